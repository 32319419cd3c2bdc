"""A server for Tarantool's binary protocol (IPROTO): an in-memory database with procedures in Python.

Applications use only the names exported here; `iproto-server serve MODULE:APP` serves them. The packages:
`protocol` is the wire format without sockets, `box` the database, `storage` its files, `server` the network
side, `app` the application interface, `testing` a plugin for pytest.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if sys.version_info < (3, 11):  # noqa: UP036  # pragma: no cover
    _TOO_OLD = f"iproto-server needs Python 3.11 or newer, and this is Python {sys.version.split()[0]}"
    if sys.argv[:1] == ["-m"]:
        sys.exit(_TOO_OLD)
    raise ImportError(_TOO_OLD)

__all__ = [
    "ABSENT",
    "NIL",
    "STILL_WAITING",
    "Application",
    "Box",
    "BoxError",
    "DueTimer",
    "Durations",
    "ErrorCode",
    "Float64",
    "Histogram",
    "IncrementalDict",
    "IteratorType",
    "ManagedQueue",
    "ManualClock",
    "NamedQueues",
    "Number64",
    "QueueState",
    "Raw",
    "Space",
    "Steps",
    "StoredQueue",
    "Tally",
    "TaskInfo",
    "TaskState",
    "Timer",
    "TransactionalDict",
    "TransactionalTwoWayDict",
    "Trigger",
    "Tuple",
    "TupleMap",
    "WaitQueue",
    "Waiter",
    "__version__",
    "pack",
    "packed_arguments",
    "pause_after",
    "unpack",
]

if TYPE_CHECKING:
    from iproto_server.app import Application, packed_arguments
    from iproto_server.box import (
        NIL,
        STILL_WAITING,
        Box,
        ManualClock,
        Space,
        Tally,
        TransactionalDict,
        TransactionalTwoWayDict,
        Tuple,
        TupleMap,
        Waiter,
        WaitQueue,
    )
    from iproto_server.box.api.due_timer import DueTimer
    from iproto_server.box.api.slices import Steps
    from iproto_server.box.backoff import pause_after
    from iproto_server.box.clock import Timer
    from iproto_server.box.txn.incremental_dict import IncrementalDict
    from iproto_server.box.txn.transactional_dict import ABSENT
    from iproto_server.box.txn.trigger import Trigger
    from iproto_server.codec.msgpack import Raw, pack, unpack
    from iproto_server.codec.number64 import Float64, Number64
    from iproto_server.errors import BoxError, ErrorCode
    from iproto_server.iterator_type import IteratorType
    from iproto_server.managed_queue import (
        Histogram,
        ManagedQueue,
        NamedQueues,
        QueueState,
        StoredQueue,
        TaskInfo,
        TaskState,
    )
    from iproto_server.native._native import Durations
    from iproto_server.program_version import PROGRAM_VERSION as __version__
else:
    _MODULES = {
        "ABSENT": "iproto_server.box.txn.transactional_dict",
        "Application": "iproto_server.app",
        "BoxError": "iproto_server.errors",
        "DueTimer": "iproto_server.box.api.due_timer",
        "Durations": "iproto_server.native._native",
        "ErrorCode": "iproto_server.errors",
        "Float64": "iproto_server.codec.number64",
        "Histogram": "iproto_server.managed_queue",
        "IncrementalDict": "iproto_server.box.txn.incremental_dict",
        "IteratorType": "iproto_server.iterator_type",
        "ManagedQueue": "iproto_server.managed_queue",
        "NamedQueues": "iproto_server.managed_queue",
        "Number64": "iproto_server.codec.number64",
        "QueueState": "iproto_server.managed_queue",
        "Raw": "iproto_server.codec.msgpack",
        "Steps": "iproto_server.box.api.slices",
        "StoredQueue": "iproto_server.managed_queue",
        "TaskInfo": "iproto_server.managed_queue",
        "TaskState": "iproto_server.managed_queue",
        "Timer": "iproto_server.box.clock",
        "Trigger": "iproto_server.box.txn.trigger",
        "__version__": "iproto_server.program_version",
        "pause_after": "iproto_server.box.backoff",
        "pack": "iproto_server.codec.msgpack",
        "packed_arguments": "iproto_server.app",
        "unpack": "iproto_server.codec.msgpack",
    }

    def __getattr__(name: str) -> object:
        # pytest imports the plugin, and with it this package, in every test run where it is installed. So the
        # database is imported only when one of its names is used.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_MODULES.get(name, "iproto_server.box")), name)
        globals()[name] = value
        return value
