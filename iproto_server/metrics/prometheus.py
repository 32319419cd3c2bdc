"""All metrics of a server, for Prometheus."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

from iproto_server.box.api.box import Box
from iproto_server.metrics.application_metrics import application_families, defined_families
from iproto_server.metrics.exposition import Family
from iproto_server.metrics.loop_lag import LoopLag
from iproto_server.metrics.queue_metrics import QueueMetrics, Queues
from iproto_server.metrics.schedule_metrics import Schedules, schedule_families
from iproto_server.metrics.server_metrics import counter_families
from iproto_server.metrics.tarantool_metrics import tarantool_families

logger = logging.getLogger("iproto_server.server")

Counters = Iterable[tuple[str, int | float]]


class PrometheusMetrics:
    """Collects the metrics of a server.

    Parameters:
        box: the box.
        lag: measures the event loop's latency.
        counters: returns the server's own counters, by the names that Graphite has.
        application_counters: returns the counters of applications, with the application's name.
        queues: returns the queues, within the running transaction.
        max_queues: maximum number of queues, and of schedules, with series.
        schedules: returns the schedules, within the running transaction.
    """

    def __init__(
        self,
        box: Box,
        lag: LoopLag,
        counters: Callable[[], Counters],
        application_counters: Callable[[], Iterable[tuple[str, str, int | float]]],
        queues: Callable[[], Queues],
        max_queues: int,
        schedules: Callable[[], Schedules],
    ) -> None:
        self._box = box
        self._lag = lag
        self._counters = counters
        self._application_counters = application_counters
        self._queues = QueueMetrics(box, queues, max_queues)
        self._max_queues = max_queues
        self._schedules = schedules
        self._repeated: set[str] = set()

    async def families(self) -> AsyncIterator[Family]:
        """Yield all metrics, each name once: those of the server take precedence."""
        names: set[str] = set()
        for family in tarantool_families(self._box, self._lag):
            names.add(family.name)
            yield family
        for family in counter_families(self._counters()):
            names.add(family.name)
            yield family
        async for family in self._queues.families():
            names.add(family.name)
            yield family
        schedules = self._box.run(self._box.session.background, self._schedules)
        for family in schedule_families(schedules, self._max_queues):
            names.add(family.name)
            yield family
        for family in self._of_applications():
            if family.name not in names:
                names.add(family.name)
                yield family
            elif family.name not in self._repeated:
                self._repeated.add(family.name)
                logger.warning("the metric %s is left out: the name is taken", family.name)

    def _of_applications(self) -> Iterator[Family]:
        yield from defined_families(self._box.metrics)
        yield from application_families(self._application_counters())
