"""Policies of queues: limits of attempts, retries, dead letters, unique keys, pauses."""
