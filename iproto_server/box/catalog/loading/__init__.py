"""Loads the rows of snapshots and logs into a catalog."""
