"""Graphite reporting and event-loop latency."""
