"""The cases of each group of requests."""
