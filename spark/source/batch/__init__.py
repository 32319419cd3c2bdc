"""Batch readers of snapshots and logs."""
