"""The examples in docs/TESTING.md work as printed."""

from __future__ import annotations

import re

import pytest

from tests.programs import REPOSITORY

EXAMPLES = re.compile(r"```python\n(?:# (?P<file>\w+\.py)\n)?(?P<code>.*?)```", re.DOTALL)


def test_the_guide_is_a_test_suite_that_passes(pytester: pytest.Pytester) -> None:
    guide = (REPOSITORY / "docs" / "TESTING.md").read_text(encoding="utf-8")
    for example in EXAMPLES.finditer(guide):
        (pytester.path / example["file"]).write_text(example["code"])
    application = pytester.path / "examples" / "lua" / "init.lua"
    application.parent.mkdir(parents=True)
    application.write_bytes((REPOSITORY / "examples" / "lua" / "init.lua").read_bytes())
    conftest = pytester.path / "conftest.py"
    conftest.write_text(f'{conftest.read_text()}\npytest_plugins = ["iproto_server.testing"]\n')
    pytester.runpytest("--strict-markers").assert_outcomes(passed=7)
