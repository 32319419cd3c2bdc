"""tarantool-python's tests."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.suites.programs import environment, run
from tests.suites.results import Results

_TIMEOUT = 900.0
_RUNNER = Path(__file__).with_name("unittest_results.py")
_CLASS_SETUP = re.compile(r"(?:setUpClass|tearDownClass) \((.*)\)")


def run_tests(checkout: Path, folder: Path, python: str, parts: Sequence[str]) -> Results:
    """Run the tests.

    Parameters:
        checkout: tarantool-python's checkout.
        folder: the folder of `tarantool`.
        python: a Python with the requirements of the tests.
        parts: parts of names of the tests to run, empty for all.

    Returns:
        Results named `CLASS.TEST`.
    """
    with tempfile.TemporaryDirectory() as temporary:
        cwd = Path(temporary)
        for name in ("test", "tarantool"):
            (cwd / name).symlink_to(checkout / name)
        written = cwd / "results.json"
        # Their helpers look for a socket's file beside the working directory, and leave directories there.
        command: list[str | Path] = [python, _RUNNER, "test.suites", written, *parts]
        output = run(command, cwd, environment(folder), _TIMEOUT)
        records = json.loads(written.read_text()) if written.exists() else []
    results = Results()
    for name, outcome, reason in records:
        name = _CLASS_SETUP.sub(r"\1.(class)", name).removeprefix("test.suites.")
        if outcome == "failed":
            results.failed.setdefault(name, reason)
        elif outcome == "skipped":
            results.skipped[name] = reason
        else:
            results.passed.add(name)
    if not records:
        results.failed["(run)"] = output.how_ended()
    return results
