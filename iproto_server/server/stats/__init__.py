"""Counters and the statistics behind `box.stat`."""
