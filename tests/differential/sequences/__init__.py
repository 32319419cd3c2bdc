"""Sequences on both servers."""
