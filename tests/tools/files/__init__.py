"""Specifies `cat`, `check` and `play`."""
