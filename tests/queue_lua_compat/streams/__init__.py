"""Random histories of the three queues with clients' streams, compared with a model.

Clients put, take, acknowledge and release tasks, in transactions of streams and outside of them; streams end
by commit, rollback, conflict, timeout and disconnect; tasks become due; log writes, procedures and triggers
fail; and code is reloaded. `make queue-streams` runs any number of histories.
"""
