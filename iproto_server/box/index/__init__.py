"""Indexes in memory: TREE and HASH."""
