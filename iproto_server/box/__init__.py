"""The database in memory: tuples, indexes, spaces, transactions, users, and the facade for procedures.

This package does not depend on sockets, files or asyncio. Rows are msgpack bytes; a `Journal` receives
committed rows; a `Clock` provides the time; calls that wait are parked as `Waiter` objects.
"""

from iproto_server.box.api.box import Box
from iproto_server.box.api.space import Space
from iproto_server.box.api.wait_queue import WaitQueue
from iproto_server.box.api.waiter import STILL_WAITING, Waiter
from iproto_server.box.clock import ManualClock
from iproto_server.box.tuple.tuple import NIL, Tuple, TupleMap
from iproto_server.box.txn.tally import Tally
from iproto_server.box.txn.transactional_dict import TransactionalDict
from iproto_server.box.txn.transactional_two_way_dict import TransactionalTwoWayDict

__all__ = [
    "NIL",
    "STILL_WAITING",
    "Box",
    "ManualClock",
    "Space",
    "Tally",
    "TransactionalDict",
    "TransactionalTwoWayDict",
    "Tuple",
    "TupleMap",
    "WaitQueue",
    "Waiter",
]
