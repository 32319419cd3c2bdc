"""Specifies the commands that work on files."""
