"""Rates of the echo server in C, with the requests of the tutorial's queue."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from bench.client.requests import payloads
from bench.peers.iproto import IPROTO
from bench.workloads.rate import Rate, Setting, Shape

SECTION: Final = "echo"
SHAPE: Final = Shape(100, 1)
_ANY_TASK: Final = b"\xcf\x80" + bytes(7)


def rates(setting: Setting, tasks: int) -> Iterator[Rate]:
    """Measure the frames of puts, takes and acknowledgements.

    Parameters:
        setting: an echo server, and the load.
        tasks: the number of frames of each kind.
    """
    with setting.server.load(setting.shape.connections, setting.shape.in_flight) as load:
        counts = [len(share) for share in load.shared(tasks)]
        work = {
            "put": [IPROTO.puts(payloads(count, setting.payload)) for count in counts],
            "take": [IPROTO.takes(count) for count in counts],
            "ack": [IPROTO.acks([_ANY_TASK] * count) for count in counts],
        }
        parts = [
            setting.measure(operation, partial(load.do, requests)) for operation, requests in work.items()
        ]
    yield from parts
    yield setting.cycle(parts)
