"""Sockets on uvloop: listening, connections, and the dispatch of requests to the box."""

from iproto_server.server.server import Server, run

__all__ = ["Server", "run"]
