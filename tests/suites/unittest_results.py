"""Runs unit tests and writes their results as JSON; a program for the Python of a suite."""

from __future__ import annotations

import json
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any


class _Recorder(unittest.TestResult):
    """Collects `[name, outcome, reason]`."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.records: list[tuple[str, str, str]] = []

    def startTest(self, test: unittest.TestCase) -> None:
        """Say which test begins, for when it never ends."""
        super().startTest(test)
        print(test.id(), file=sys.stderr, flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:
        """Record a test that passed."""
        self.records.append((test.id(), "passed", ""))

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        """Record a test that was left out."""
        self.records.append((test.id(), "skipped", reason))

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        """Record a test that failed."""
        self._failed(test, err)

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        """Record a test that failed with an unexpected exception."""
        self._failed(test, err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        """Record a part of a test that failed, as a failure of the test."""
        if err is not None:
            self._failed(test, err)

    def _failed(
        self, test: unittest.TestCase, err: tuple[type[BaseException], BaseException, TracebackType]
    ) -> None:
        self.records.append((test.id(), "failed", " ".join(f"{err[0].__name__}: {err[1]}".split())[:300]))


def _flat(tests: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in tests:
        if isinstance(test, unittest.TestSuite):
            yield from _flat(test)
        else:
            yield test


def main(module: str, file: str, *parts: str) -> None:
    """Run a module's tests.

    Parameters:
        module: the module.
        file: where the results are written.
        parts: parts of names of the tests to run; none: all.
    """
    recorder = _Recorder()
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    if parts:
        suite = unittest.TestSuite(test for test in _flat(suite) if any(part in test.id() for part in parts))
    suite.run(recorder)
    Path(file).write_text(json.dumps(recorder.records))


if __name__ == "__main__":
    sys.path.insert(0, ".")
    main(*sys.argv[1:])
