"""The queue of Tarantool's tutorial: `queue.put`, `queue.take`, `queue.ack`, `queue.release`, `queue.stats`,
and for many tasks at once `queue.put_many`, `queue.take_many`, `queue.ack_many`.

    iproto-server serve queue_lua_compat.tutorial:app

`queue.py` implements the procedures, `space.py` defines the space, `arguments.py` checks what clients send.
"""

from iproto_server import Application
from queue_lua_compat.tutorial.queue import TutorialQueue

__all__ = ["TutorialQueue", "app", "queue"]

app = Application("queue")
queue = TutorialQueue(app)
