"""Targets of changes of spaces: answers, keys, paths, updates."""
