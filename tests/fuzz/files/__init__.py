"""Targets of files: logs, rows, recovery, replay."""
