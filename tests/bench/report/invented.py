"""Invented figures of a comparison."""

from __future__ import annotations

from bench.scenarios.storage.checkpoint import Cost
from bench.scenarios.storage.recovery import Start
from bench.workloads.rate import Rate

OURS, TARANTOOL, BEANSTALKD = "ours", "Tarantool", "beanstalkd"
MANY = "10 × 100"


def rate(
    contender: str,
    operation: str,
    per_second: float,
    server_us: float = 10.0,
    latencies_ms: tuple[float, float, float] = (1.0, 2.0, 3.0),
    *,
    section: str = "queue",
    shape: str = MANY,
    number: int = 0,
) -> Rate:
    """Create a measurement."""
    return Rate(
        section,
        contender,
        "write",
        shape,
        100,
        operation,
        number,
        1000,
        per_second,
        server_us,
        0.5,
        0.25,
        None if operation == "cycle" else list(latencies_ms),
        50 * 2**20,
    )


def cost(contender: str, pause: float) -> Cost:
    """Create the costs of a snapshot."""
    return Cost(contender, True, 2.5, 0.001, pause, 1.1, 1.05, 3000.0, 2700.0)


def start(contender: str, kind: str, writer: str, seconds: float) -> Start:
    """Create a start."""
    return Start(contender, kind, writer, 1000, seconds, seconds / 2, seconds / 4)
