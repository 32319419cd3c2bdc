"""Snapshots while the server runs."""
