"""Specifies `backup` and `restore`."""
