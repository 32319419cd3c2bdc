"""Consoles on a terminal: a line editor that does not block the event loop, and its history."""
