"""The results that the tests of the comparison share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.report.results import Results
from bench.scenarios.queues.delivery import Delivery
from bench.scenarios.storage.backlog import Footprint
from tests.bench.report.invented import BEANSTALKD, MANY, OURS, TARANTOOL, cost, rate, start


@pytest.fixture
def results() -> Results:
    """Create results of all measurements of ours, Tarantool and beanstalkd."""
    made = Results([OURS, TARANTOOL, BEANSTALKD], ["Redis"], 1_000_000)
    for name, speed in ((OURS, 3000.0), (TARANTOOL, 1000.0), (BEANSTALKD, 2000.0)):
        for shape in ("1 × 1", MANY, "100 × 1", "1000 × 1"):
            for operation in ("put", "take", "ack", "cycle"):
                latency = 1000 / speed
                times = (latency, 2 * latency, 3 * latency)
                made.rates.append(rate(name, operation, speed, 1e5 / speed, times, shape=shape))
        made.deliveries.append(Delivery(name, 0, 2000, 100, 0, 4000, [0.1, 0.2, 0.3], 50.0, 60.0))
        made.footprints.append(Footprint(name, 1_000_000, 10**7, 10**7 + int(speed) * 10**5))
        made.costs.append(cost(name, 15 / speed))
    for name, speed in ((OURS, 500.0), (TARANTOOL, 1000.0)):
        made.rates += [
            rate(name, operation, speed, section="raw")
            for operation in ("insert", "select", "replace", "update", "delete")
        ]
        made.rates += [
            rate(name, driver, 2 * speed, section="tubes", shape=shape)
            for shape in (MANY, "100 × 1")
            for driver in ("fifo", "fifottl", "utube", "utubettl")
        ]
        made.rates.append(
            rate(name, "put", speed, section="latency", shape="1000 × 1", latencies_ms=(1, speed, 1))
        )
        for kind in ("snapshot", "log"):
            made.starts += [start(name, kind, writer, speed / 100) for writer in (OURS, TARANTOOL)]
    made.rates += [
        rate(OURS, "cycle", 700.0, section="echo", shape="100 × 1"),
        rate("echo", "cycle", 1000.0, section="echo", shape="100 × 1"),
        *(
            replace(each, contender="the module")
            for each in made.rates
            if each.section == "tubes" and each.contender == TARANTOOL
        ),
        rate(OURS, "cycle", 900.0, section="standing"),
        rate(OURS, "cycle", 1080.0, section="empty"),
    ]
    return made
