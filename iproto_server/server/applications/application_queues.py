"""The queues of the served applications, for operators."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from iproto_server.app import Application, Queues
from iproto_server.box import Box
from iproto_server.errors import BoxError
from iproto_server.managed_queue import ManagedQueue

logger = logging.getLogger("iproto_server.server")


class ApplicationQueues:
    """Finds the queues whenever it is asked, as they come and go.

    Parameters:
        box: the box.
        applications: returns the served applications.
    """

    def __init__(self, box: Box, applications: Callable[[], Iterable[Application]]) -> None:
        self._box = box
        self._applications = applications
        self._failed: set[Queues] = set()

    def all(self) -> list[ManagedQueue]:
        """Return all queues in the order of their names, within the running transaction."""
        found: list[ManagedQueue] = []
        for application in self._applications():
            for source in application.queue_sources:
                found += self._of(application.name, source)
        return sorted(found, key=lambda queue: queue.name)

    def find(self, name: str) -> ManagedQueue:
        """Return the queue of a name. Raises BoxError if there is none."""
        for queue in self.all():
            if queue.name == name:
                return queue
        raise BoxError.procedure(f'there is no queue "{name}"')

    def find_or_begin(self, name: str) -> ManagedQueue:
        """Return the queue of a name, also one that begins with its first task. Raises BoxError if none."""
        for queue in self.all():
            if queue.name == name:
                return queue
        for application in self._applications():
            for find in application.queue_finders:
                found = find(self._box, name)
                if found is not None:
                    return found
        raise BoxError.procedure(f'there is no queue "{name}"')

    def _of(self, name: str, source: Queues) -> list[ManagedQueue]:
        """Return an application's queues; none after an error, which is logged once in a row."""
        try:
            queues = list(self._box.atomic(source, self._box))
        except BaseException:  # an application's error must not hide the queues of others
            if source not in self._failed:
                logger.exception("the queues of %s failed", name)
            self._failed.add(source)
            return []
        self._failed.discard(source)
        return queues
