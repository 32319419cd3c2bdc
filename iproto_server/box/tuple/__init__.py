"""Tuples and space formats."""
