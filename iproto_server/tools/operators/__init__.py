"""Commands for operators of a running server."""
