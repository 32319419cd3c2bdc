"""Runs many random histories."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tests.queue_lua_compat.streams.history import History

STEPS: Final = 120
LINES_SHOWN: Final = 40


@dataclass
class Report:
    """The result of a campaign.

    Attributes:
        histories: the number of histories.
        counts: the numbers of events.
        finding: the difference and the events before it; None if nothing was found.
        seed: the seed of the last history.
    """

    kind: str
    histories: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    finding: str | None = None
    seed: int = 0

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
        line = f"{self.kind}: {self.histories} histories: {counts}"
        return line if self.finding is None else f"{line}\n{self.finding}"


def campaign(
    kind: str,
    seed: int,
    *,
    histories: int | None = None,
    seconds: float | None = None,
    steps: int = STEPS,
    clock: Callable[[], float] = time.monotonic,
) -> Report:
    """Run histories with consecutive seeds.

    Parameters:
        kind: the kind of queue, from `DIALECTS`.
        seed: The first seed.
        histories: the number of histories; None for any number.
        seconds: the time limit; None for none.
        steps: the number of steps in each.
        clock: the clock.

    Returns:
        The result; the first finding ends the campaign.
    """
    report = Report(kind)
    end = None if seconds is None else clock() + seconds
    while (histories is None or report.histories < histories) and (end is None or clock() < end):
        report.seed = seed + report.histories
        history = History(kind, report.seed)
        try:
            history.run(steps)
        except Exception as error:  # noqa: BLE001  # any exception is a finding
            happened = "\n".join(history.log[-LINES_SHOWN:])
            cause = "".join(traceback.format_exception(error))
            report.finding = f"FOUND with {kind} --seed {report.seed} --steps {steps}:\n{happened}\n{cause}"
            return report
        finally:
            report.counts.update(history.counts)
        report.histories += 1
    return report
