"""The plugins of the tests: what a test needs is found, and what must run alone does."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import settings

from tests.plugins.alone import Locks
from tests.plugins.durations import FACTOR, FAST, SLOW, Durations
from tests.plugins.markers import markers_of
from tests.plugins.profiles import DEFAULT, examples
from tests.running_server import RunningServer


def _start(server: type[RunningServer]) -> None:
    """Start a server."""
    server(cast(Any, None))


def _start_ours() -> None:
    _start(RunningServer)


def _start_in_a_nested_function() -> object:
    return lambda: _start_ours()


class _Starter:
    def __init__(self) -> None:
        subprocess.run(["true"], check=True)


class TestMarkers:
    def test_a_server_is_found_through_helpers(self) -> None:
        assert markers_of(_start_in_a_nested_function) >= {"server"}

    def test_a_process_is_found_in_a_class(self) -> None:
        assert markers_of(_Starter) == {"process"}

    def test_a_test_of_values_needs_nothing(self) -> None:
        assert markers_of(markers_of) == frozenset()

    def test_a_unit_test_must_not_start_a_process(self, pytester: pytest.Pytester) -> None:
        pytester.makepyfile(
            """
            import importlib

            def test_it_hides_what_it_starts():
                importlib.import_module("sub" + "process").run(["true"], check=True)
            """
        )
        pytester.makeini("[pytest]\nmarkers =\n    unit: nothing\n")
        result = pytester.runpytest_inprocess("-p", "tests.plugins.markers")
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["*a test marked `unit` started subprocess.Popen*"])


def _report(function: str, seconds: float, *keywords: str) -> pytest.TestReport:
    report = SimpleNamespace(
        nodeid=f"tests/box/{function}",
        duration=seconds,
        when="call",
        passed=True,
        keywords=dict.fromkeys(keywords),
    )
    return cast(pytest.TestReport, report)


class TestDurations:
    @pytest.mark.parametrize(
        ("seconds", "keywords", "words"),
        [
            (FACTOR * SLOW + 1, [], "mark it `slow`"),
            (FACTOR * SLOW - 1, [], None),
            (FACTOR * SLOW + 1, ["slow"], None),
            (FAST / 2, ["slow"], "it is not `slow`"),
        ],
    )
    def test_a_wrong_marker_is_told(self, seconds: float, keywords: list[str], words: str | None) -> None:
        durations = Durations(prints=True, fails=True)
        durations.pytest_runtest_logreport(_report("test_a.py::test_a", seconds, *keywords))
        lines = durations.wrong_markers()
        assert [words in line for line in lines] == [True] if words else lines == []

    def test_one_slow_parameter_is_enough(self) -> None:
        durations = Durations(prints=True, fails=True)
        for parameter, seconds in (("a", 0.0), ("b", SLOW)):
            durations.pytest_runtest_logreport(_report(f"test_a.py::test_a[{parameter}]", seconds, "slow"))
        assert durations.wrong_markers() == []

    @pytest.mark.parametrize(
        ("option", "status"),
        [
            ("--check-durations", pytest.ExitCode.TESTS_FAILED),
            ("--check-durations=fail", pytest.ExitCode.TESTS_FAILED),
            ("--check-durations=print", pytest.ExitCode.OK),
        ],
    )
    def test_it_prints_folders_and_may_fail_the_run(
        self, pytester: pytest.Pytester, option: str, status: pytest.ExitCode
    ) -> None:
        pytester.makeini("[pytest]\nmarkers =\n    slow: not at all\n")
        pytester.makepyfile("import pytest\n\n@pytest.mark.slow\ndef test_a():\n    pass\n")
        result = pytester.runpytest_inprocess("-p", "tests.plugins.durations", option)
        assert result.ret == status
        result.stdout.fnmatch_lines(
            ["*seconds by folder*", "*1 passed*", "*test_a: takes 0.00 s; it is not `slow`"]
        )


class TestAlone:
    @pytest.fixture
    def locks(self, tmp_path: Any) -> Iterator[tuple[Locks, Locks]]:
        """The locks of two processes."""
        both = Locks(tmp_path), Locks(tmp_path)
        yield both
        for locks in both:
            locks.close()

    @staticmethod
    def item(*, alone: bool) -> pytest.Item:
        return cast(pytest.Item, SimpleNamespace(get_closest_marker=lambda name: alone or None))

    @pytest.mark.parametrize(
        ("first", "second", "waits"), [(True, False, True), (False, True, True), (False, False, False)]
    )
    def test_nothing_runs_beside_it(
        self, locks: tuple[Locks, Locks], first: bool, second: bool, waits: bool
    ) -> None:
        one, other = locks
        has_begun = Event()
        running = one.pytest_runtest_protocol(self.item(alone=first))
        next(running)

        def run_the_other() -> None:
            test = other.pytest_runtest_protocol(self.item(alone=second))
            next(test)
            has_begun.set()
            test.close()

        thread = Thread(target=run_the_other)
        thread.start()
        assert has_begun.wait(0.1 if waits else 10) is not waits
        running.close()
        thread.join(10)
        assert has_begun.is_set()


@pytest.fixture
def _profile_as_before() -> Iterator[None]:
    before = settings.get_current_profile_name()
    yield
    settings.load_profile(before)


@pytest.mark.usefixtures("_profile_as_before")
@pytest.mark.parametrize(("profile", "number"), [(DEFAULT, 60), ("check", 6), ("explore", 600)])
def test_examples_are_in_the_proportion_of_the_profile(profile: str, number: int) -> None:
    settings.load_profile(profile)
    assert examples(60).max_examples == number
