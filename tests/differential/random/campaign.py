"""Runs cases of a group until enough requests are compared or something is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky

from tests.differential.random.answer import Inspection
from tests.differential.random.cases.starting import NotStarted, fault_after
from tests.differential.random.comparison import Comparison, Difference
from tests.differential.random.groups import GROUPS
from tests.differential.random.request import Request
from tests.differential.random.servers import INDEX_CHECK, Servers, TarantoolGone
from tests.differential.random.values.draws import drawn

_CASES: Final = 150
"""The maximum number of cases of a round: Hypothesis remembers them to avoid repetitions."""

_REQUESTS_OF_A_CASE: Final = 30
"""The approximate number of requests in a case."""


Finding = Difference | NotStarted


class _Found(Exception):
    """A case with a difference."""


@dataclass(slots=True)
class Report:
    """The result of a campaign.

    Attributes:
        group: The group's name.
        seed: The seed of all choices, together with the number of requests.
        requests: The intended number of requests.
        comparison: The counters.
        crashes: The number of times the real Tarantool ended.
        starts: The number of cases after which servers were started from our files.
        findings: The differences and faults, each simplified.
    """

    group: str
    seed: int
    requests: int = 0
    comparison: Comparison = field(default_factory=Comparison)
    crashes: int = 0
    starts: int = 0
    findings: list[Finding] = field(default_factory=list)

    def __str__(self) -> str:
        counted = self.comparison
        lines = [
            f"{self.group}, seed {self.seed}: {counted.compared} requests compared,"
            f" {counted.refused} of them refused; {len(self.findings)} differences;"
            f" the real Tarantool crashed {self.crashes} times"
        ]
        if self.starts:
            lines.append(f"  both servers were started from our files after {self.starts} cases")
        lines += [f"  {count} × on purpose: {reason}" for reason, count in counted.deliberate.most_common()]
        for finding in self.findings:
            again = f"make diff GROUP={self.group} SEED={self.seed} REQUESTS={self.requests}"
            lines += ["", "DIFFERENCE, again with", f"  {again}", str(finding)]
        return "\n".join(lines)


class Campaign:
    """Compares both servers.

    Parameters:
        group: The name of a group.
        seed: The seed of all choices.
        directory: An empty directory for the servers' files.
        tell: Called with progress messages.
        most: The number of differences after which it ends; each kind counts once.
    """

    def __init__(
        self,
        group: str,
        seed: int,
        directory: Path,
        tell: Callable[[str], None] = lambda line: None,
        *,
        most: int = 1,
    ) -> None:
        self._group = GROUPS[group]
        self._tell = tell
        self._most = most
        self._kinds: set[tuple[object, ...]] = set()
        self._last: tuple[Sequence[Request], Finding] | None = None
        self._before: Sequence[Request] = ()
        self._is_log_spoiled = False
        """Whether our log may have rows of an earlier case with a difference, which excludes starts."""
        self.report = Report(group, seed)
        self._servers = Servers(directory, self._group.world, tell, is_logged=self._group.is_started_from)

    def run(self, requests: int) -> Report:
        """Compare the answers to a number of requests, and stop the servers.

        Parameters:
            requests: The minimum number; fewer if enough differences are found before.
        """
        report = self.report
        report.requests = requests
        number = 0
        try:
            while report.comparison.compared < requests and len(report.findings) < self._most:
                self._round(report.seed * 1_000_003 + number, requests)
                number += 1
        finally:
            self._servers.stop()
        return report

    def _round(self, round_seed: int, requests: int) -> None:
        missing = requests - self.report.comparison.compared

        @seed(round_seed)
        @settings(
            max_examples=min(_CASES, missing // _REQUESTS_OF_A_CASE + 1),
            database=None,
            deadline=None,
            print_blob=False,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
            report_multiple_bugs=False,
        )
        @given(drawn(self._group.case))
        def compare(case: list[Request]) -> None:
            if self._last is None and self.report.comparison.compared >= requests:
                return
            difference = self._difference(case)
            if difference is not None and difference.signature not in self._kinds:
                self._confirm(case, difference)

        self._last = None
        try:
            compare()
        except (_Found, Flaky):
            self._take_finding()

    def _confirm(self, case: Sequence[Request], difference: Finding) -> None:
        """Raise a difference that a new real Tarantool confirms."""
        if self._last is None:
            before = self._before
            self._servers.restart("there is a difference; new servers are asked again")
            again = self._difference(case)
            if again is None:
                if not (isinstance(difference, NotStarted) and self._shows_after(before, case)):
                    self._tell(f"new servers answer alike:\n{difference}")
                return
            difference = again
        self._last = (case, difference)
        raise _Found

    def _shows_after(self, before: Sequence[Request], case: Sequence[Request]) -> bool:
        """Include the case before, since the log has its clean-up. Record what is found then."""
        self._servers.restart("new servers are asked the case before first")
        found = self._difference(before) or self._difference(case)
        if not isinstance(found, NotStarted) or found.signature in self._kinds:
            return False
        self._kinds.add(found.signature)
        finding = replace(found, before=before)
        self.report.findings.append(finding)
        self._tell(f"found:\n{finding}")
        return True

    def _take_finding(self) -> None:
        """Record the simplest case, if new servers confirm it."""
        assert self._last is not None
        self._servers.restart("the smallest case is asked of new servers")
        case, smallest = self._last
        confirmed = self._difference(case)
        self._kinds.add(smallest.signature)
        if confirmed is None:
            self._tell(f"new servers answer the smallest case alike:\n{smallest}")
        else:
            self._kinds.add(confirmed.signature)
            self.report.findings.append(confirmed)
            self._tell(f"found:\n{confirmed}")

    def _difference(self, case: Sequence[Request]) -> Finding | None:
        try:
            answers = self._servers.ask(case)
        except TarantoolGone:
            self.report.crashes += 1
            asked = "\n".join(f"  {request}" for request in case)
            self._tell(f"the real Tarantool is gone; it was asked\n{asked}")
            self._servers.restart("the real one is gone")
            return None
        difference: Finding | None = self.report.comparison.compare(case, *answers)
        faults = self._servers.index_faults()
        if faults and difference is None:
            difference = self.report.comparison.inspect(case, *answers, INDEX_CHECK, Inspection(faults))
        if self._group.is_started_from:
            if difference is not None:
                self._is_log_spoiled = True
            else:
                self.report.starts += 1
                difference = fault_after(case, self._servers)
                if difference is not None:
                    # Every later case would have these rows in its log.
                    self._servers.restart("nobody starts from our log any more")
                    was_spoiled, self._is_log_spoiled = self._is_log_spoiled, False
                    return self._difference(case) if was_spoiled else difference
        is_restored = self._servers.restore()
        self._before = case if is_restored else ()
        return difference
