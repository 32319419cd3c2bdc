"""Benchmark scenarios, one per module; run each with `python -m bench.scenarios.ROOM.NAME`."""
