"""The crash test: a server under load is killed at random moments and restarted, and must lose nothing.

    make crash LIVES=10000 SEED=1

Clients (`writer`, `builder`, `worker`, `clerk`, `trader`) send pipelined requests and record the outcome of
each: acknowledged, refused, or unknown because the connection broke (`world`, `tasks`, `numbering`, `deals`);
an `onlooker` reads concurrently. A `campaign` kills the server at moments derived from a seed, restarts it on
the same directory, reads all contents (`audit`) and has the `checker` compare them.
`data_files` checks the logs and snapshots as the kill left them; `torn_write` adds what a crash of the
machine would leave. A `fork_server` starts most servers, and `scale` says how long they live.
"""
