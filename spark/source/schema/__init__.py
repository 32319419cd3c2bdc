"""Space definitions found in snapshots and logs."""
