"""Cost of the queue's policies: cycles of the tutorial's queue with options of the queue and of puts.

    python -m bench.scenarios.queues.policies [--rounds N] [--tasks N] [--shape 10x100 ...] [--directory DIR]

One server of ours for each setting; they are measured alternately.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.client.iproto_frames import call_frame
from bench.client.requests import Requests
from bench.lib.table import table
from bench.peers.contender import Server, alternating
from bench.peers.database import DatabaseServer, Ours
from bench.peers.iproto import Iproto
from bench.scenarios.queues.throughput import SECTION, rates, usual_tasks, warm_up
from bench.workloads.rate import Rate, Setting, Shape, load_parser

ROUNDS: Final = 9
SHAPES: Final = (Shape(10, 100), Shape(100, 1))
_KEY_SIZE: Final = 24
"""The beginnings of random payloads are as good as numbers for unique keys."""


@dataclass(frozen=True, slots=True)
class PutsWithOptions(Iproto):
    """The tutorial's queue, whose puts have options.

    Attributes:
        options: the options of all puts.
        has_key: whether each put has a unique key.
    """

    options: Mapping[str, object]
    has_key: bool

    def puts(self, payloads: Sequence[bytes], delay: int = 0) -> Requests:
        """`queue.put`. Raises ValueError: a delay is no part of these measurements."""
        if delay:
            raise ValueError("these puts have no delay")
        return Requests.of(
            call_frame("queue.put", [payload.decode(), self._options_of(payload)]) for payload in payloads
        )

    def _options_of(self, payload: bytes) -> dict[str, object]:
        options: dict[str, object] = dict(self.options)
        if self.has_key:
            options["unique_key"] = payload[:_KEY_SIZE].decode()
        return options


@dataclass(frozen=True)
class OursWithPolicy(Ours):
    """Our server with a policy.

    Attributes:
        name: what it is called.
        queue: the options of the queue.
        puts: those of puts; None for puts without options.
        has_key: whether each put has a unique key.
    """

    name: str = "without"
    queue: Mapping[str, object] = field(default_factory=dict)
    puts: Mapping[str, object] | None = None
    has_key: bool = False

    @property
    def dialect(self) -> Any:  # type: ignore[override]  # that of its puts
        """The protocol."""
        return super().dialect if self.puts is None else PutsWithOptions(self.puts, self.has_key)


_RETRIES: Final = {"release_limit": 5, "release_limit_policy": "DLQ", "retry": {"delay": 1}}

SETTINGS: Final = (
    OursWithPolicy(),
    OursWithPolicy(name="queue: release_limit, retry", queue=_RETRIES),
    OursWithPolicy(name="queue: ttr", queue={"ttr": 600}),
    OursWithPolicy(name="put: delay 0", puts={"delay": 0}),
    OursWithPolicy(name="put: release_limit, retry", puts=_RETRIES),
    OursWithPolicy(name="put: unique_key", puts={}, has_key=True),
    OursWithPolicy(name="put: unique_key, unique_for", puts={"unique_for": 60}, has_key=True),
)
"""What is compared, the first one with all others."""


def measure(
    directory: Path,
    shapes: Sequence[Shape],
    rounds: int,
    tasks: int | None = None,
    settings: Sequence[OursWithPolicy] = SETTINGS,
) -> list[Rate]:
    """Measure all settings, one after the other in each round.

    Parameters:
        directory: the directory for the servers' files.
        shapes: the shapes of the load.
        rounds: the number of rounds.
        tasks: the number of tasks of a measurement; None for about a second of them.
        settings: what is measured.
    """
    measured: list[Rate] = []
    with ExitStack() as stack:
        servers: list[Server] = []
        for number, setting in enumerate(settings):
            server = DatabaseServer(setting, directory / f"server-{number}")
            servers.append(stack.enter_context(server))
            if setting.queue:
                server.connection.call("operator.configure", "queue", dict(setting.queue))
            warm_up(server)
        for number in range(rounds):
            for one in shapes:
                for each in alternating(servers, number):
                    measured += rates(Setting(each, SECTION, one, number), tasks or usual_tasks(one))
    return measured


def shown(measured: Sequence[Rate]) -> str:
    """Format the cycles as a table: medians, and the medians of each round's ratios to the first setting."""
    rows: list[list[str]] = []
    names = list(dict.fromkeys(rate.contender for rate in measured))
    for one in dict.fromkeys(rate.shape for rate in measured):
        found = {
            name: [
                rate
                for rate in measured
                if (rate.shape, rate.operation, rate.contender) == (one, "cycle", name)
            ]
            for name in names
        }
        base = found[names[0]]
        for name in names:
            cycles = found[name]
            pairs = list(zip(cycles, base, strict=True))
            rows.append(
                [
                    one,
                    name,
                    f"{median(rate.per_second for rate in cycles):,.0f}",
                    f"{median(each.per_second / other.per_second for each, other in pairs):.2f}",
                    f"{median(rate.server_us for rate in cycles):.1f}",
                    f"{median(each.server_us / other.server_us for each, other in pairs):.2f}",
                ]
            )
    header = ["connections\n× in flight", "options", "cycles/s", "ratio", "CPU µs", "ratio"]
    return table("Cycles of the tutorial's queue with options of policies", header, rows, texts=2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table.

    Parameters:
        arguments: the command line; None for this process's own.

    Returns:
        The exit status.
    """
    parser = load_parser(
        "bench.scenarios.queues.policies", "Measure what policies of queues cost.", ROUNDS, SHAPES
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        print(shown(measure(Path(directory), options.shape, options.rounds, options.tasks)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
