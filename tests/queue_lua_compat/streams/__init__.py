"""Random histories of the three queues with clients' streams in them, next to a model.

Clients put, take, acknowledge and release tasks, in transactions of streams and outside of them; streams end
by commit, rollback, conflict, timeout and disconnect, tasks' times come, writes to the log fail, procedures
and triggers fail, and code is loaded anew. `make queue-streams` goes on with that for as long as one likes.
"""
