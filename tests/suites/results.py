"""Results of a suite's tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

NEVER_RAN = "never ran"
"""The beginning of the reason for a test that its script did not come to."""


@dataclass
class Results:
    """Results of one run of a suite.

    Attributes:
        passed: names of the tests that passed.
        failed: name to reason of those that failed, or never ran although they were planned.
        skipped: name to reason of those that the suite left out.
    """

    passed: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The number of tests."""
        return len(self.passed) + len(self.failed) + len(self.skipped)

    def add(self, other: Results) -> None:
        """Add the results of another part of the suite."""
        self.passed |= other.passed
        self.failed.update(other.failed)
        self.skipped.update(other.skipped)

    def count(self) -> str:
        """Describe the numbers of tests."""
        text = f"{len(self.passed)} of {self.total} passed"
        return f"{text}, {len(self.skipped)} skipped" if self.skipped else text


def report(suite: str, results: Mapping[str, Results]) -> Iterator[str]:
    """Describe what a suite did with several programs.

    Parameters:
        suite: the suite's name.
        results: the program's name to its results.

    Yields:
        Lines: the counts, then each failed test with its reason, and which other programs fail it as well.
    """
    for program, result in results.items():
        yield f"{suite}: {program}: {result.count()}"
    for program, result in results.items():
        never_ran: dict[str, int] = {}
        for name, reason in sorted(result.failed.items()):
            if reason.startswith(NEVER_RAN):
                key = f"{name.partition(':')[0]}: {reason}"
                never_ran[key] = never_ran.get(key, 0) + 1
                continue
            others = [other for other, found in results.items() if other != program and name in found.failed]
            also = f" (also with {', '.join(others)})" if others else ""
            yield f"{suite}: {program}: FAILED {name}{also}: {reason}"
        for reason, count in never_ran.items():
            yield f"{suite}: {program}: FAILED {count} of {reason}"
