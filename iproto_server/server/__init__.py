"""Sockets on uvloop: listening, connections, and the dispatch of requests to the box."""

from iproto_server.server.process import run
from iproto_server.server.server import Server
from iproto_server.server.service_manager import ServiceManager

__all__ = ["Server", "ServiceManager", "run"]
