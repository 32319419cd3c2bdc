"""The command `connect`: a console of a server."""
