"""Scenarios with queues: rates, latencies and policies."""
