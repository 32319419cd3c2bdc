"""The counters that Graphite is told: the applications' own and the server's."""

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
    """Asks applications for their counters.

    Parameters:
        box: what they count in.
        applications: whom to ask.
    """

    def __init__(self, box: Box, applications: Iterable[Application]) -> None:
        self._box = box
        self._applications = list(applications)
        self._failed: set[Metrics] = set()

    def __iter__(self) -> Counters:
        for application in self._applications:
            for source in application.metric_sources:
                yield from self._of(application.name, source)

    def _of(self, name: str, source: Metrics) -> list[tuple[str, int | float]]:
        """An application's counters; none when it fails, which is logged the first time in a row."""
        try:
            # In a transaction, though it changes nothing: it must not see what others have not committed.
            counters = list(self._box.run(self._box.session.background, source, self._box).items())
        except BaseException:  # whatever it is, it is no reason to end the server
            if source not in self._failed:
                logger.exception("the counters of %s failed", name)
            self._failed.add(source)
            return []
        self._failed.discard(source)
        return counters


def requests_by_name(requests: Mapping[int, int]) -> Counters:
    """How many requests there were of each type.

    Parameters:
        requests: how many, by the type's number.
    """
    named: Counter[str] = Counter()
    for kind, count in requests.items():
        named[request_name(kind)] += count
    for name, count in named.items():
        yield f"server.requests.{name}", count


def request_name(kind: int) -> str:
    """A request type's name as part of a counter's name."""
    try:
        return RequestType(kind).name.lower()
    except ValueError:
        return "unknown"
