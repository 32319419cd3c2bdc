"""Specifies the commands for operators of a running server."""
