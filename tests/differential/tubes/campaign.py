"""Runs conversations until enough requests are compared or a difference is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from tests.differential.tubes.conversation import Step, conversations
from tests.differential.tubes.lockstep import Lockstep, Pair, Passing
from tests.differential.tubes.servers import Kind

_CONVERSATIONS: Final = 100
"""The maximum number of conversations of a round: Hypothesis remembers them to avoid repetitions."""

_REQUESTS_OF_A_CONVERSATION: Final = 15
"""The approximate number of requests in a conversation."""

_PASSINGS: Final = st.sampled_from([None] * 27 + [*Passing])
"""The directories change hands in the middle of every tenth conversation."""


class _Found(Exception):
    """A conversation with a difference."""


@dataclass(slots=True)
class Report:
    """The result of a campaign.

    Attributes:
        ours, theirs: What served the tubes.
        seed: The seed of all choices, together with the number of requests.
        requests: The number of requests that were compared.
        conversations: The number of conversations.
        passings: The number of times that the directories changed hands.
        deliberate: The numbers of deliberate differences, by reason.
        findings: The differences, each in the simplest conversation.
    """

    ours: Kind
    theirs: Kind
    seed: int
    requests: int = 0
    conversations: int = 0
    passings: int = 0
    deliberate: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"{self.ours} and {self.theirs}, seed {self.seed}: {self.requests} requests in"
            f" {self.conversations} conversations compared, directories changed hands {self.passings} times;"
            f" {len(self.findings)} differences"
        ]
        lines += [f"  {count} × on purpose: {reason}" for reason, count in self.deliberate.most_common()]
        for finding in self.findings:
            lines += ["", "DIFFERENCE", finding]
        return "\n".join(lines)


class Campaign:
    """Compares two servers of tubes.

    Parameters:
        ours, theirs: What serves the tubes.
        seed: The seed of all choices.
        directory: An empty directory for the servers' files.
        tell: Called with messages about the progress.
    """

    def __init__(
        self,
        ours: Kind,
        theirs: Kind,
        seed: int,
        directory: Path,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._directory = directory
        self._tell = tell
        self._last: str | None = None
        self.report = Report(ours, theirs, seed)

    def run(self, requests: int) -> Report:
        """Compare the answers to a number of requests, or up to the first difference.

        Parameters:
            requests: The minimum number of requests.

        Returns:
            The report.
        """
        report, number = self.report, 0
        while report.requests < requests and not report.findings:
            self._round(report.seed * 1_000_003 + number, requests)
            number += 1
            self._tell(str(report).partition("\n")[0])
        return report

    def _round(self, round_seed: int, requests: int) -> None:
        """Compare a number of conversations between the same two servers."""
        missing = requests - self.report.requests
        servers = [self._start()]

        @seed(round_seed)
        @settings(
            max_examples=min(_CONVERSATIONS, missing // _REQUESTS_OF_A_CONVERSATION + 1),
            database=None,
            deadline=None,
            print_blob=False,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
            report_multiple_bugs=False,
        )
        @given(conversation=conversations, passing=_PASSINGS)
        def compare(conversation: tuple[str, dict[str, Any], list[Step]], passing: Passing | None) -> None:
            said: list[str] = []
            try:
                self._talk(servers[0], said, conversation, passing)
            except Exception as error:
                self._last = "\n".join([*said, f"{type(error).__name__}: {error}"])
                servers[0].__exit__(type(error), error, error.__traceback__)
                servers[0] = self._start()
                raise _Found from error

        self._last = None
        try:
            compare()
        except (_Found, Flaky):
            assert self._last is not None
            self.report.findings.append(self._last)
        finally:
            servers[0].__exit__(None, None, None)

    def _start(self) -> Pair:
        return Pair(self.report.ours, self.report.theirs, self._directory, is_logged=True)

    def _talk(
        self,
        pair: Pair,
        said: list[str],
        conversation: tuple[str, dict[str, Any], list[Step]],
        passing: Passing | None,
    ) -> None:
        kind, options, steps = conversation
        report = self.report
        talk = Lockstep(pair, said.append)
        talk.begin(kind, options)
        middle = len(steps) // 2
        try:
            for number, step in enumerate(steps):
                if number == middle and passing is not None:
                    if not talk.pass_directories(passing):
                        break
                    report.passings += 1
                if not talk.go_on(step):
                    break
        finally:
            report.conversations += 1
            report.requests += talk.steps
            report.deliberate += talk.deliberate
