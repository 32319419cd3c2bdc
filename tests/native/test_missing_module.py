"""Tests of compiled code are skipped where nothing is compiled, and fail in CI."""

from __future__ import annotations

import pytest

import iproto_server.native
import pyspark_tarantool.native
from iproto_server.native import PURE_PYTHON

MARKS = ["needs_compiled_server", "needs_compiled_spark"]


class NotCompiled:
    """Stands for a module that is not there."""

    name = "some._native"
    is_compiled = False

    def staleness(self) -> None:
        """Nothing was compiled."""


@pytest.fixture
def tests_of_compiled_code(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A test for each mark; neither module is compiled."""
    monkeypatch.delenv(PURE_PYTHON, raising=False)
    for package in (iproto_server.native, pyspark_tarantool.native):
        monkeypatch.setattr(package, "module", NotCompiled())
    pytester.makepyfile(
        "from tests import compiled\n\n"
        + "\n\n".join(f"@compiled.{mark}\ndef test_{mark}():\n    pass\n" for mark in MARKS)
    )
    return pytester


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"CI": "true"}, {"errors": 2}),
        ({"CI": ""}, {"skipped": 2}),
        ({"CI": "true", PURE_PYTHON: "1"}, {"skipped": 2}),
    ],
    ids=["in CI", "elsewhere", "pure Python was asked for"],
)
def test_a_missing_module(
    tests_of_compiled_code: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    expected: dict[str, int],
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = tests_of_compiled_code.runpytest_inprocess("-p", "no:benchmark", "-p", "tests.compiled")
    done.assert_outcomes(errors=expected.get("errors", 0), skipped=expected.get("skipped", 0))
