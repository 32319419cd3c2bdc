"""Latency of puts from many connections with one request each."""

from __future__ import annotations

from typing import Final

from bench.workloads.rate import Rate, Setting, Shape

SECTION: Final = "latency"
SHAPE: Final = Shape(1000, 1)
TASKS: Final = 20_000


def put_rate(setting: Setting, tasks: int) -> Rate:
    """Measure puts of tasks, which are taken and acknowledged afterwards.

    Parameters:
        setting: the server and the load.
        tasks: the number of tasks.
    """
    with setting.server.load(setting.shape.connections, setting.shape.in_flight) as load:
        rate = setting.measure("put", lambda: load.put(tasks, setting.payload))
        load.take(tasks)
        load.ack()
    return rate
