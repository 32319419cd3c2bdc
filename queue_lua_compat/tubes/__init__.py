"""Tubes: the queue module of github.com/tarantool/queue, whose clients and whose data directories it takes.

    iproto-server serve queue_lua_compat.tubes:app

A tube is a space with tasks; its type says in which order they are taken and what times they have. The types
are drivers (`driver.py`), to which an application may add its own; `queue.py` has the tubes, `tube.py` what
is done with the tasks of one.
"""

from __future__ import annotations

from iproto_server import Application
from queue_lua_compat.tubes.driver import drivers
from queue_lua_compat.tubes.fifo import FifoDriver
from queue_lua_compat.tubes.fifottl import FifoTtlDriver
from queue_lua_compat.tubes.limfifottl import LimitedFifoTtlDriver
from queue_lua_compat.tubes.procedures import Procedures
from queue_lua_compat.tubes.queue import Queue
from queue_lua_compat.tubes.utube import UtubeDriver
from queue_lua_compat.tubes.utubettl import UtubeTtlDriver

drivers.register("fifo", FifoDriver)
drivers.register("fifottl", FifoTtlDriver)
drivers.register("limfifottl", LimitedFifoTtlDriver)
drivers.register("utube", UtubeDriver)
drivers.register("utubettl", UtubeTtlDriver)

app = Application("tubes")
queue = Queue(app, drivers)
procedures = Procedures(app, queue)
register_driver = queue.register_driver

__all__ = ["app", "drivers", "queue", "register_driver"]
