"""Specifies what the benchmarks rest on."""
