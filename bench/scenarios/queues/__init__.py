"""Scenarios with queues: rates, latencies, policies and backlogs."""
