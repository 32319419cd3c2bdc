"""Suites of scripts that write TAP: tarantool/queue's and Tarantool's own."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from tests.suites.programs import Output, environment, run
from tests.suites.results import NEVER_RAN, Results

_LINE = re.compile(r"(not )?ok - ?(.*)|(not )?ok$")
_PLAN = re.compile(r"1\.\.(\d+)")
_SKIPPED = re.compile(r"# ?skip(.*)", re.IGNORECASE)
_TIMEOUT = 60.0


def run_scripts(
    scripts: Sequence[Path], folder: Path, cwd: Path | None, additions: dict[str, str]
) -> Results:
    """Run scripts, each in a process of its own.

    Parameters:
        scripts: executable files.
        folder: the folder of `tarantool`.
        cwd: the working directory; None: an empty one for each script.
        additions: environment variables; `{temporary}` in their values is a script's own empty directory.

    Returns:
        Results of the outermost tests, named `FILE: NUMBER NAME`.
    """
    results = Results()
    for script in scripts:
        with tempfile.TemporaryDirectory() as temporary:
            given = {name: value.replace("{temporary}", temporary) for name, value in additions.items()}
            variables = environment(folder, given)
            command = [folder / "tarantool", script]
            found = run(command, cwd or Path(temporary), variables, _TIMEOUT)
        expected = script.with_name(script.name.replace(".test.lua", ".result"))
        if expected.suffix == ".result" and expected.exists():
            results.add(_compare(script.name, found, expected.read_text()))
        else:
            results.add(parse(script.name, found))
    return results


def chosen(scripts: Sequence[Path], parts: Sequence[str]) -> list[Path]:
    """Return the scripts with one of the parts in their names; all if there are no parts."""
    return [path for path in scripts if not parts or any(part in path.name for part in parts)]


def parse(script: str, output: Output) -> Results:
    """Read what a script wrote.

    Parameters:
        script: its file's name.
        output: what its process wrote.

    Returns:
        Results of the outermost tests. The script itself is one more, `FILE: process`, if it did not end by
        itself with what it had planned.
    """
    results, number, planned, name, details = Results(), 0, 0, "", list[str]()
    for line in output.output.splitlines():
        if plan := _PLAN.match(line):
            planned = int(plan[1])
        elif outcome := _LINE.match(line):
            number += 1
            title = outcome[2] or ""
            skip = _SKIPPED.search(title)
            name, details = f"{script}: {number} {title}".strip(), []
            if outcome[1] or outcome[3]:
                results.failed[name] = ""
            elif skip:
                results.skipped[name] = skip[1].strip()
            else:
                results.passed.add(name)
        elif line.strip().startswith("not ok") or re.match(r"\s+(got|expected|unexpected|is|strict):", line):
            details.append(line.strip())
        if name in results.failed:
            results.failed[name] = "; ".join(details)[:300]
    for missing in range(number + 1, planned + 1):
        results.failed[f"{script}: {missing}"] = f"{NEVER_RAN}: {output.how_ended()}"
    if not planned or output.status is None or output.status < 0:
        results.failed[f"{script}: process"] = output.how_ended()
    return results


def _compare(script: str, output: Output, expected: str) -> Results:
    """Compare what a script wrote with the text that its suite expects."""
    name = f"{script}: output"
    if output.output == expected:
        return Results(passed={name})
    pairs = zip_longest(output.output.splitlines(), expected.splitlines())
    got, wanted = next((pair for pair in pairs if pair[0] != pair[1]), (None, None))
    return Results(failed={name: f"got {got!r}, expected {wanted!r}; {output.how_ended()}"})
