"""The in-memory engine: spaces, their rows, and read views."""
