"""The database in memory: tuples, indexes, spaces, transactions, users, and the facade that procedures see.

Nothing in this room knows about sockets, files or asyncio. Rows are msgpack bytes; committed rows are handed
to a `Journal`; time comes from a `Clock`; a call that has to wait is parked as a `Waiter`.
"""

from iproto_server.box.box import Box
from iproto_server.box.clock import ManualClock
from iproto_server.box.space import Space
from iproto_server.box.tally import Tally
from iproto_server.box.transactional_dict import TransactionalDict
from iproto_server.box.tuple import NIL, Tuple
from iproto_server.box.waiting import STILL_WAITING, Waiter, WaitQueue

__all__ = [
    "NIL",
    "STILL_WAITING",
    "Box",
    "ManualClock",
    "Space",
    "Tally",
    "TransactionalDict",
    "Tuple",
    "WaitQueue",
    "Waiter",
]
