"""Scenarios with files: snapshots, logs and recovery."""
