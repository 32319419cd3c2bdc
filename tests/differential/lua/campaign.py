"""Runs random snippets on both servers, and simplifies those that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from tests.differential.lua.comparison import Outcome
from tests.differential.lua.deliberate import reason_for
from tests.differential.lua.servers import Gone, Servers
from tests.differential.lua.snippet import TOPICS, Snippet, snippet


@dataclass(frozen=True, slots=True)
class Difference:
    """A snippet that does not do the same here and there."""

    snippet: Snippet
    ours: Outcome
    theirs: Outcome

    def __str__(self) -> str:
        return f"{self.snippet}\n  ours:   {self.ours}\n  theirs: {self.theirs}"


@dataclass(slots=True)
class Report:
    """The result of a campaign.

    Attributes:
        seed: The seed of all choices.
        compared: The number of snippets that were compared, by topic.
        failed: The number of those that ended with an error.
        crashes: The number of times the real Tarantool ended.
        deliberate: The numbers of deliberate differences, by reason.
        differences: The other ones, simplified.
    """

    seed: int
    compared: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    crashes: int = 0
    deliberate: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"seed {self.seed}: {self.compared.total()} snippets compared, {self.failed} of them failed;"
            f" {len(self.differences)} differences; the real Tarantool ended {self.crashes} times"
        ]
        lines += [f"  {count} of {topic}" for topic, count in sorted(self.compared.items())]
        lines += [f"  {count} × on purpose: {reason}" for reason, count in self.deliberate.most_common()]
        return "\n".join(lines)


class Campaign:
    """Compares both servers.

    Parameters:
        seed: The seed of all choices.
        directory: An empty directory for the servers' files.
        topics: Names of `TOPICS`.
        tell: Called with differences, and with the reasons for new servers.
    """

    def __init__(
        self,
        seed: int,
        directory: Path,
        topics: Sequence[str] = tuple(TOPICS),
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._random = Random(seed)
        self._topics = tuple(topics)
        self._tell = tell
        self._servers = Servers(directory, tell)
        self.report = Report(seed)

    def run(self, count: int, most: int = 20) -> Report:
        """Compare snippets, and stop the servers.

        Parameters:
            count: The number of snippets.
            most: The number of differences after which it ends.

        Returns:
            The report.
        """
        try:
            for _ in range(count):
                self._compare(snippet(self._random, self._topics))
                if len(self.report.differences) >= most:
                    break
        finally:
            self._servers.stop()
        return self.report

    def _compare(self, one: Snippet) -> None:
        report = self.report
        try:
            ours, theirs = self._servers.evaluate(one)
        except Gone:
            report.crashes += 1
            return
        report.compared[one.topic] += 1
        report.failed += theirs[0] == "error"
        if ours == theirs:
            return
        found = self._simplified(one)
        if found is None:
            self._tell(f"not again: {Difference(one, ours, theirs)}")
            return
        reason = reason_for(found.snippet, found.ours, found.theirs)
        if reason is not None:
            report.deliberate[reason] += 1
            return
        report.differences.append(found)
        self._tell(f"DIFFERENCE\n{found}")

    def _simplified(self, one: Snippet) -> Difference | None:
        """Leave out lines as long as a difference stays. Returns None if there is none when asked again."""
        best = self._difference(one)
        if best is None:
            return None
        place = 0
        while place < len(best.snippet.lines):
            lines = best.snippet.lines
            shorter = self._difference(replace(best.snippet, lines=(*lines[:place], *lines[place + 1 :])))
            if shorter is None:
                place += 1
            else:
                best = shorter
        return best

    def _difference(self, one: Snippet) -> Difference | None:
        try:
            ours, theirs = self._servers.evaluate(one)
        except Gone:
            self.report.crashes += 1
            return None
        return None if ours == theirs else Difference(one, ours, theirs)
