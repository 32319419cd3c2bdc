"""Scenarios with many stored tasks: backlogs, snapshots, logs and recovery."""
