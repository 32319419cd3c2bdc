"""A server that speaks Tarantool's binary protocol (IPROTO), with the database in memory and procedures in
Python.

An application is written on the names exported here; `iproto-server serve MODULE:APP` serves it. The rooms:
`protocol` is the wire without sockets, `box` the database without either, `server` the sockets, `app` what an
application is.
"""

from iproto_server.app import Application
from iproto_server.box import NIL, STILL_WAITING, Box, ManualClock, Space, Tuple, Waiter, WaitQueue
from iproto_server.errors import BoxError, ErrorCode

__all__ = [
    "NIL",
    "STILL_WAITING",
    "Application",
    "Box",
    "BoxError",
    "ErrorCode",
    "ManualClock",
    "Space",
    "Tuple",
    "WaitQueue",
    "Waiter",
]
