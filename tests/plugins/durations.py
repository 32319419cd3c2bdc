"""Where the time of a run went, by folder, and whether the marker `slow` is where it belongs."""

from __future__ import annotations

from collections import defaultdict

import pytest

SLOW = 5.0
"""Seconds: tests that take longer on a quiet machine are marked `slow`."""

FACTOR = 3
"""Times `SLOW`: what a test without the marker may take, as machines are busy at times."""

FAST = SLOW / 10
"""Seconds: a test that takes less, whatever its parameters, must not be marked `slow`."""

OPTION = "--check-durations"


class Durations:
    """Sums the durations of the tests of a run.

    Parameters:
        prints: Whether the sums and wrong markers are printed.
        fails: Whether a wrong marker fails the run. A busy machine makes any test slow, so only `make
            check-durations` asks for this.
    """

    def __init__(self, *, prints: bool, fails: bool) -> None:
        self._prints = prints
        self._fails = fails
        self._folders: defaultdict[str, float] = defaultdict(float)
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._longest: defaultdict[str, float] = defaultdict(float)
        self._slow: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one phase of a test."""
        folder = "/".join(report.nodeid.split("::")[0].split("/")[:-1][:3])
        self._folders[folder] += report.duration
        if report.when != "call" or not report.passed:
            return
        self._counts[folder] += 1
        function = report.nodeid.split("[")[0]
        self._longest[function] = max(self._longest[function], report.duration)
        if "slow" in report.keywords:
            self._slow.add(function)

    def wrong_markers(self) -> list[str]:
        """Find the tests whose marker does not agree with their durations.

        Returns:
            One line for each.
        """
        lines = []
        for function, seconds in self._longest.items():
            if function not in self._slow and seconds > FACTOR * SLOW:
                lines.append(f"{function}: takes {seconds:.1f} s; mark it `slow`")
            elif function in self._slow and seconds < FAST:
                lines.append(f"{function}: takes {seconds:.2f} s; it is not `slow`")
        return lines

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run if a marker is wrong."""
        if self._fails and session.exitstatus == pytest.ExitCode.OK and self.wrong_markers():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the sums, and the wrong markers."""
        if not self._prints:
            return
        terminalreporter.section("seconds by folder")
        for folder, seconds in sorted(self._folders.items(), key=lambda found: -found[1]):
            terminalreporter.write_line(f"{seconds:8.1f}  {self._counts[folder]:6d} passed  {folder}")
        if wrong := self.wrong_markers():
            terminalreporter.section("durations and the marker `slow` disagree")
            for line in wrong:
                terminalreporter.write_line(line)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption(
        OPTION,
        nargs="?",
        const="fail",
        choices=("print", "fail"),
        help="print seconds by folder and wrong markers `slow`; `fail` (the default): fail if there are any",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Watch in the process that prints."""
    if not hasattr(config, "workerinput"):
        asked = config.getoption(OPTION)
        durations = Durations(prints=asked is not None, fails=asked == "fail")
        config.pluginmanager.register(durations, "durations-by-folder")
