"""The legacy queue: registers its functions."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from iproto_server import Application, Box, ManagedQueue
from queue_lua_compat.legacy.admin import Admin
from queue_lua_compat.legacy.consumer import Consumer
from queue_lua_compat.legacy.management import managed_tubes, tube_by_name
from queue_lua_compat.legacy.producer import Producer
from queue_lua_compat.legacy.registry import Registry
from queue_lua_compat.legacy.state import QueueState
from queue_lua_compat.legacy.statistics import Statistics

_KEPT: Final = "queue_lua_compat.legacy"

logger = logging.getLogger("queue_lua_compat.legacy")


class LegacyQueue(QueueState):
    """The queue.

    The first two arguments of most functions are the space, by number or name, and the tube or the task's id.
    A task is returned as its id, its tube, its status, and the fields of its data.

    Parameters:
        application: the application that provides the procedures, hooks and counters.
    """

    def __init__(self, application: Application) -> None:
        application.setup(self.setup)
        application.on_reload(self.replaced)
        producer, consumer, admin = Producer(self), Consumer(self), Admin(self)
        application.metrics(admin.counters)
        application.queues(self.managed)
        application.queue_by_name(self.managed_by_name)
        self._producer, self._admin = producer, admin
        functions = (
            *(producer.put, producer.put_unique, producer.urgent, producer.put_many, producer.put_with),
            *(consumer.take, consumer.take_many, consumer.touch, consumer.ack, consumer.ack_many),
            *(consumer.release, consumer.requeue, consumer.bury, consumer.done),
            *(admin.dig, admin.kick, admin.delete, admin.truncate),
            *(admin.meta, admin.peek, admin.statistics),
        )
        for function in functions:
            application.procedure(f"queue.{function.__name__}")(function)
        application.procedure("queue.unbury")(admin.dig)
        application.procedure("queue.statistic")(admin.statistics)

    def setup(self, box: Box) -> None:
        """Find spaces with tubes, and release tasks of ended sessions.

        A reload keeps the owners of taken tasks, waiting calls, and the counters.
        """
        self.box = box
        self.statistics = Statistics(box, box.keep(f"{_KEPT}.counters", dict))
        self.registry = Registry(box, self.statistics, box.keep(f"{_KEPT}.spaces", dict))
        box.session.on_disconnect(self._disconnected)

    def replaced(self, box: Box) -> None:
        """Stop the timers: new code has replaced this."""
        for queue_space in self.registry.spaces.values():
            queue_space.due_timer.stop()

    def managed(self, box: Box) -> Iterable[ManagedQueue]:
        """Return the tubes for operators."""
        return managed_tubes(self, self._producer, self._admin)

    def managed_by_name(self, box: Box, name: str) -> ManagedQueue | None:
        """Return a tube for operators by its name, also one without tasks; None if there is no such space."""
        return tube_by_name(self, self._producer, self._admin, name)

    def _disconnected(self) -> None:
        """Release the tasks of a closed connection."""
        session_id = self.box.session.id()
        for queue_space in self.registry.spaces.values():
            count = queue_space.owners.drop_session(session_id)
            if count:
                logger.info("disconnected %s, releasing its tasks: %d", session_id, count)
