"""Producers and workers, with our servers and a real Tarantool."""
