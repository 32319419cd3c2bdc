"""Counters for Graphite: those of applications, and requests by type."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from iproto_server.app import Application, Metrics
from iproto_server.box.api.box import Box
from iproto_server.protocol.constants import RequestType

logger = logging.getLogger("iproto_server.server")

Counters = Iterator[tuple[str, int | float]]


class ApplicationMetrics:
    """Collects the counters of applications.

    Parameters:
        box: the box.
        applications: the applications.
    """

    def __init__(self, box: Box, applications: Iterable[Application]) -> None:
        self._box = box
        self._applications = list(applications)
        self._failed: set[Metrics] = set()

    def __iter__(self) -> Counters:
        for _, name, value in self.by_application():
            yield name, value

    def by_application(self) -> Iterator[tuple[str, str, int | float]]:
        """Yield the counters with the application's name first."""
        for application in self._applications:
            for source in application.metric_sources:
                for name, value in self._of(application.name, source):
                    yield application.name, name, value

    def _of(self, name: str, source: Metrics) -> list[tuple[str, int | float]]:
        """Return an application's counters; none after an error, which is logged once in a row."""
        try:
            # In a transaction, so that it sees no uncommitted changes.
            counters = list(self._box.run(self._box.session.background, source, self._box).items())
        except BaseException:  # an application's error must not end the server
            if source not in self._failed:
                logger.exception("the counters of %s failed", name)
            self._failed.add(source)
            return []
        self._failed.discard(source)
        return counters


def requests_by_name(requests: Mapping[int, int]) -> Counters:
    """Yield the number of requests of each type, by the counter's name.

    Parameters:
        requests: number of requests by type.
    """
    named: Counter[str] = Counter()
    for kind, count in requests.items():
        named[request_name(kind)] += count
    for name, count in named.items():
        yield f"server.requests.{name}", count


def request_name(kind: int) -> str:
    """Return a request type's name for a counter."""
    try:
        return RequestType(kind).name.lower()
    except ValueError:
        return "unknown"
