"""The queues of the served applications, for operators."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Final

from iproto_server.app import Application, Queues
from iproto_server.box import Box
from iproto_server.box.api.slices import Steps
from iproto_server.errors import BoxError
from iproto_server.managed_queue import ManagedQueue, NamedQueues

logger = logging.getLogger("iproto_server.server")

NAMES: Final = 25
"""The number of names that are found in a step, some 50 µs."""

Find = Callable[[str], ManagedQueue | None]


class QueueList:
    """Queues in the order of their names, each made when it is reached.

    Parameters:
        found: the names, each with the function that finds its queue.
    """

    def __init__(self, found: list[tuple[str, Find]]) -> None:
        self._found = sorted(found, key=itemgetter(0))

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[ManagedQueue]:
        return self.after(None)

    def after(self, name: str | None) -> Iterator[ManagedQueue]:
        """Return the queues behind a name; None for all."""
        begin = 0 if name is None else bisect_right(self._found, name, key=itemgetter(0))
        for place in range(begin, len(self._found)):
            name, find = self._found[place]
            queue = find(name)
            if queue is not None:
                yield queue


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

    def all(self) -> QueueList:
        """Return all queues in the order of their names, within the running transaction."""
        return self._box.in_one_slice(self.all_steps())

    def all_steps(self) -> Steps[QueueList]:
        """Find the names of all queues in slices; as `all`."""
        found: list[tuple[str, Find]] = []
        for queues in self._sources():
            if isinstance(queues, NamedQueues):
                for number, name in enumerate(queues.names, 1):
                    found.append((name, queues.find))
                    if number % NAMES == 0:
                        yield
            else:
                found += [(queue.name, _always(queue)) for queue in queues]
        return QueueList(found)

    def find(self, name: str) -> ManagedQueue:
        """Return the queue of a name. Raises BoxError if there is none."""
        queue = self.find_or_none(name)
        if queue is None:
            raise BoxError.procedure(f'there is no queue "{name}"')
        return queue

    def find_or_none(self, name: str) -> ManagedQueue | None:
        """Return the queue of a name, or None."""
        for queues in self._sources():
            if isinstance(queues, NamedQueues):
                queue = queues.find(name)
                if queue is not None:
                    return queue
            else:
                for queue in queues:
                    if queue.name == name:
                        return queue
        return None

    def find_or_begin(self, name: str) -> ManagedQueue:
        """Return the queue of a name, also one that begins with its first task. Raises BoxError if none."""
        queue = self.find_or_none(name)
        if queue is not None:
            return queue
        for application in self._applications():
            for find in application.queue_finders:
                found = find(self._box, name)
                if found is not None:
                    return found
        raise BoxError.procedure(f'there is no queue "{name}"')

    def _sources(self) -> Iterator[NamedQueues | list[ManagedQueue]]:
        for application in self._applications():
            for source in application.queue_sources:
                yield self._of(application.name, source)

    def _of(self, name: str, source: Queues) -> NamedQueues | list[ManagedQueue]:
        """Return an application's queues; none after an error, which is logged once in a row."""
        try:
            found = self._box.atomic(source, self._box)
            queues = found if isinstance(found, NamedQueues) else list(found)
        except BaseException:  # an application's error must not hide the queues of others
            if source not in self._failed:
                logger.exception("the queues of %s failed", name)
            self._failed.add(source)
            return []
        self._failed.discard(source)
        return queues


def _always(queue: ManagedQueue) -> Find:
    return lambda _: queue
