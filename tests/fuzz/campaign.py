"""Fuzzing a target for a while, and what came of it."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.fuzz.memory import needs_little
from tests.fuzz.target import target

INPUT_TIMEOUT: Final = 20
"""Seconds after which an input counts as one that hangs; machines may be slow."""

INPUT_MAX: Final = 4096
"""Inputs are no longer than this, in bytes."""

LINES_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class Report:
    """What came of fuzzing a target.

    Attributes:
        name: The target.
        seed: What libFuzzer drew from.
        runs: How many inputs it was fed.
        covered: How many edges and comparisons of the code were seen, as libFuzzer counts them.
        kept: How many inputs the corpus has now.
        found: The input that something is wrong with; None if there is none.
        output: The end of what the process said.
    """

    name: str
    seed: int
    runs: int
    covered: int
    kept: int
    found: bytes | None
    output: str

    def __str__(self) -> str:
        counts = f"{self.runs} inputs, {self.covered} covered, corpus {self.kept}"
        line = f"{self.name}: seed {self.seed}, {counts}"
        return line if self.found is None else f"{line}\nFOUND {self.found!r}\n{self.output}"


def greedy(name: str, directory: Path) -> list[bytes]:
    """Which inputs that fuzzing kept need too much memory.

    Args:
        name: The target.
        directory: Where its corpus is.
    """
    tested = target(name)
    kept = [path.read_bytes() for path in sorted((directory / name).iterdir())]
    return [data for data in kept if not needs_little(tested, data)]


def has_atheris() -> bool:
    """Whether there is atheris; it has no wheels for some machines."""
    return find_spec("atheris") is not None


def fuzz(name: str, directory: Path, *, seconds: int, seed: int) -> Report:
    """Fuzz a target.

    Args:
        name: The target.
        directory: Where its corpus grows, in a folder of its own; what is there already is used.
        seconds: How long.
        seed: What is drawn from; 0 lets libFuzzer take one.

    Returns:
        What came of it; it ends with the first finding.
    """
    corpus = directory / name
    corpus.mkdir(parents=True, exist_ok=True)
    described = target(name)
    for data in (*described.seeds, *described.cases.values()):
        (corpus / hashlib.sha1(data).hexdigest()).write_bytes(data)
    artifacts = directory / f"{name}-found-"
    options = [
        f"-max_total_time={seconds}",
        f"-seed={seed}",
        f"-timeout={INPUT_TIMEOUT}",
        f"-max_len={INPUT_MAX}",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
        f"-artifact_prefix={artifacts}",
        str(corpus),
    ]
    command = [sys.executable, "-m", "tests.fuzz.fuzzer", name, *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    output = done.stdout.decode("utf-8", "replace")
    written = re.search(r"Test unit written to (.+)", output)
    found = Path(written[1]).read_bytes() if written else None
    if found is None and done.returncode:
        raise RuntimeError(f"the fuzzer ended with {done.returncode}:\n{output}")
    return Report(
        name,
        int(_last(r"INFO: Seed: (\d+)", output)),
        int(_last(r"stat::number_of_executed_units: *(\d+)|^#(\d+)", output)),
        int(_last(r"cov: (\d+)", output)),
        len(list(corpus.iterdir())),
        found,
        "\n".join(output.splitlines()[-LINES_SHOWN:]),
    )


def _last(pattern: str, text: str) -> str:
    """What the last match of a pattern has in its first group that is not empty; 0 without a match."""
    matches = list(re.finditer(pattern, text, re.MULTILINE))
    return next(filter(None, matches[-1].groups())) if matches else "0"
