"""The crash test: a server under load is killed at any moment and started again, and nothing may be lost.

    make crash SECONDS=600 SEED=1

Clients (`writer`, `builder`, `worker`, `clerk`, `trader`) send pipelined requests and note what they know of
each: acknowledged, refused, or unknown because the connection broke (`world`, `tasks`, `numbering`, `deals`);
an `onlooker` sees what others see meanwhile. A `campaign` kills the server at moments drawn from a seed,
starts it again on the same directory, takes one look at everything (`audit`) and has the `checker` compare.
`data_files` checks the logs and snapshots as the kill left them.
"""
