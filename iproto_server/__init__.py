"""A server that speaks Tarantool's binary protocol (IPROTO), with the database in memory and procedures in
Python.

An application is written on the names exported here; `iproto-server serve MODULE:APP` serves it. The rooms:
`protocol` is the wire without sockets, `box` the database without either, `server` the sockets, `app` what an
application is, `testing` a plugin for pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = [
    "ABSENT",
    "NIL",
    "STILL_WAITING",
    "Application",
    "Box",
    "BoxError",
    "ErrorCode",
    "Float64",
    "IteratorType",
    "ManualClock",
    "Number64",
    "Space",
    "Tally",
    "Timer",
    "TransactionalDict",
    "Trigger",
    "Tuple",
    "WaitQueue",
    "Waiter",
    "pack",
]

if TYPE_CHECKING:
    from iproto_server.app import Application
    from iproto_server.box import (
        NIL,
        STILL_WAITING,
        Box,
        ManualClock,
        Space,
        Tally,
        TransactionalDict,
        Tuple,
        Waiter,
        WaitQueue,
    )
    from iproto_server.box.clock import Timer
    from iproto_server.box.index.iterator_type import IteratorType
    from iproto_server.box.txn.transactional_dict import ABSENT
    from iproto_server.box.txn.trigger import Trigger
    from iproto_server.codec.msgpack import pack
    from iproto_server.codec.number64 import Float64, Number64
    from iproto_server.errors import BoxError, ErrorCode
else:
    _MODULES = {
        "ABSENT": "iproto_server.box.txn.transactional_dict",
        "Application": "iproto_server.app",
        "BoxError": "iproto_server.errors",
        "ErrorCode": "iproto_server.errors",
        "Float64": "iproto_server.codec.number64",
        "IteratorType": "iproto_server.box.index.iterator_type",
        "Number64": "iproto_server.codec.number64",
        "Timer": "iproto_server.box.clock",
        "Trigger": "iproto_server.box.txn.trigger",
        "pack": "iproto_server.codec.msgpack",
    }

    def __getattr__(name: str) -> object:
        # The plugin for pytest is imported in every test run of everybody who has installed this package, and
        # the package with it; the database is imported when a name of it is asked for.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_MODULES.get(name, "iproto_server.box")), name)
        globals()[name] = value
        return value
