"""Fuzzes a target for some time, and reports the result."""

from __future__ import annotations

import hashlib
import random
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.fuzz.memory import needs_little
from tests.fuzz.target import target
from tests.fuzz.unguided import INPUT_MAX, file_of_last_input, last_input

INPUT_TIMEOUT: Final = 20
"""Seconds after which an input counts as hanging; machines may be slow."""

STARTING_TIMEOUT: Final = 60
"""Seconds that a process may take to start."""

LINES_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class Report:
    """The result of fuzzing a target.

    Attributes:
        name: The target.
        seed: libFuzzer's seed.
        runs: The number of inputs.
        covered: The number of edges and comparisons covered, as counted by libFuzzer; 0 without guidance.
        kept: The number of inputs in the corpus.
        found: The input that revealed a fault; None if there is none.
        output: The end of the process's output.
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
        if self.found is None:
            return f"{line}, nothing found"
        return f"{line}, 1 finding\nFOUND {self.found!r}\n{self.output}"


def greedy(name: str, directory: Path) -> list[bytes]:
    """Return the inputs of the corpus that need too much memory.

    Parameters:
        name: The target.
        directory: The directory of the corpus.
    """
    tested = target(name)
    kept = [path.read_bytes() for path in sorted((directory / name).iterdir())]
    return [data for data in kept if not needs_little(tested, data)]


def has_atheris() -> bool:
    """Whether atheris is installed; it has no wheels for some machines."""
    return find_spec("atheris") is not None


def fuzz(name: str, directory: Path, *, seconds: int, seed: int) -> Report:
    """Fuzz a target.

    Parameters:
        name: The target.
        directory: The directory of its corpus, in a subdirectory; existing inputs are used.
        seconds: The duration.
        seed: The seed; 0 lets libFuzzer choose one.

    Returns:
        The result; the first finding ends the run.
    """
    corpus = _corpus(name, directory)
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


def mutate(name: str, directory: Path, *, seconds: int, seed: int) -> Report:
    """Check random mutations of a corpus, without guidance by coverage.

    Parameters:
        name: The target.
        directory: The directory of its corpus, in a subdirectory.
        seconds: The duration.
        seed: The seed; 0 chooses one.

    Returns:
        The result; the first finding ends the run.
    """
    corpus = _corpus(name, directory)
    seed = seed or random.SystemRandom().randrange(1, 2**32)
    command = [sys.executable, "-m", "tests.fuzz.unguided", name, str(directory), str(seconds), str(seed)]
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=seconds + STARTING_TIMEOUT + INPUT_TIMEOUT,
        )
        has_ended, output = done.returncode == 0, done.stdout.decode("utf-8", "replace")
    except subprocess.TimeoutExpired as error:
        has_ended, output = False, str(error)
    return Report(
        name,
        seed,
        int(_last(r"^#(\d+)", output)),
        0,
        len(list(corpus.iterdir())),
        None if has_ended else last_input(file_of_last_input(name, directory)),
        "\n".join(output.splitlines()[-LINES_SHOWN:]),
    )


def _corpus(name: str, directory: Path) -> Path:
    """Return the directory of a target's corpus, which has at least its seeds and cases."""
    corpus = directory / name
    corpus.mkdir(parents=True, exist_ok=True)
    described = target(name)
    for data in (*described.seeds, *described.cases.values()):
        (corpus / hashlib.sha1(data).hexdigest()).write_bytes(data)
    return corpus


def _last(pattern: str, text: str) -> str:
    """Return the first non-empty group of a pattern's last match as a number; 0 without a match."""
    matches = list(re.finditer(pattern, text, re.MULTILINE))
    return next(filter(None, matches[-1].groups())) if matches else "0"
