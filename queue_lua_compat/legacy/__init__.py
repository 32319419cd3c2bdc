"""The legacy queue: that of Tarantool 1.5, with tubes, priorities and times to live.

    iproto-server serve queue_lua_compat.legacy:app

docs/QUEUES.md describes its functions. `task` defines the rows and the answers made of them, `arguments`
checks what clients send, `queue_space` is a space with tubes, `registry` finds spaces by name or number,
`statistics` counts, `producer`, `consumer` and `admin` have the functions, `state` what these share, and
`queue` registers them.

Source: "Queue API description" of the queue for Tarantool 1.5, in English and in Russian.
"""

from iproto_server import Application
from queue_lua_compat.legacy.queue import LegacyQueue

__all__ = ["LegacyQueue", "app", "queue"]

app = Application("legacy queue")
queue = LegacyQueue(app)
