"""Policies for the tasks of all queues: limits of attempts, retries, dead letters, unique keys, pauses.

`options.py` defines the options of queues and tasks, `queue_policy.py` applies them to one queue. The state
is in spaces of its own (`spaces.py`), so that the rows of queues stay as they are: failed attempts and the
options of single tasks (`attempts.py`), and keys of tasks (`unique_keys.py`).
"""
