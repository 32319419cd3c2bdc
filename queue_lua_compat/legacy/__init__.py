"""The older queue: the dialect of the queue for Tarantool 1.5, with tubes, priorities and times to live.

    iproto-server serve queue_lua_compat.legacy:app

What its functions do is said in docs/QUEUES.md. The rooms: `task` is a row of a queue's space and what is
answered of it, `arguments` what clients give, `queue_space` a space with tubes in it and what happens there
by itself, `registry` the spaces by the names that clients have for them, `statistics` the counters,
`producer`, `consumer` and `admin` the functions, `queue` all of it.

Source: "Queue API description" of the queue for Tarantool 1.5, in English and in Russian.
"""

from iproto_server import Application
from queue_lua_compat.legacy.queue import LegacyQueue

__all__ = ["LegacyQueue", "app", "queue"]

app = Application("legacy queue")
queue = LegacyQueue(app)
