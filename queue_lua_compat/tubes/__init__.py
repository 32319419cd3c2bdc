"""Tubes: compatible with clients and data directories of the module github.com/tarantool/queue.

    iproto-server serve queue_lua_compat.tubes:app

A tube is a space of tasks; its type determines the order of tasks and their times. Types are drivers
(`driver.py`), and applications can add some. `queue.py` manages the tubes, `tube.py` has the calls of one
tube.
"""

from __future__ import annotations

from iproto_server import Application
from queue_lua_compat.tubes.driver import drivers as registry
from queue_lua_compat.tubes.drivers.fifo import FifoDriver
from queue_lua_compat.tubes.drivers.fifottl import FifoTtlDriver
from queue_lua_compat.tubes.drivers.limfifottl import LimitedFifoTtlDriver
from queue_lua_compat.tubes.drivers.utube import UtubeDriver
from queue_lua_compat.tubes.drivers.utubettl import UtubeTtlDriver
from queue_lua_compat.tubes.procedures import Procedures
from queue_lua_compat.tubes.queue import Queue

registry.register("fifo", FifoDriver)
registry.register("fifottl", FifoTtlDriver)
registry.register("limfifottl", LimitedFifoTtlDriver)
registry.register("utube", UtubeDriver)
registry.register("utubettl", UtubeTtlDriver)

app = Application("tubes")
queue = Queue(app, registry)
procedures = Procedures(app, queue)
register_driver = queue.register_driver

__all__ = [
    "FifoDriver",
    "FifoTtlDriver",
    "LimitedFifoTtlDriver",
    "UtubeDriver",
    "UtubeTtlDriver",
    "app",
    "queue",
    "register_driver",
]
