"""Benchmark clients: connections, request mixes, and clients that behave well or badly."""
