"""Reads a space of a running server, and talks to servers."""
