"""One run of random mutations on one target: `python -m tests.fuzz.unguided TARGET DIRECTORY SECONDS SEED`.

The corpus of a guided run leads them far into the code. libFuzzer cannot guide compiled modules with
sanitizers, whose runtime library hides its own functions. A sanitizer ends the process.
"""

from __future__ import annotations

import os
import sys
import time
from itertools import chain
from pathlib import Path
from typing import Final

from tests.fuzz.mutate import mutations
from tests.fuzz.target import target

INPUT_MAX: Final = 4096
"""The maximum length of inputs in bytes."""

_SIZE: Final = 4


def last_input(file: Path) -> bytes:
    """Return the last input of a run.

    Parameters:
        file: The file that the run wrote.
    """
    content = file.read_bytes()
    return content[_SIZE : _SIZE + int.from_bytes(content[:_SIZE], "big")]


def file_of_last_input(name: str, directory: Path) -> Path:
    """Return the path of the file with the last input.

    Parameters:
        name: The target.
        directory: The directory of the corpora.
    """
    return directory / f"{name}-last"


def main() -> None:
    """Check the corpus and its mutations until the time is over."""
    name, directory, seconds, seed = sys.argv[1:]
    check = target(name).check
    corpus = [path.read_bytes() for path in sorted((Path(directory) / name).iterdir())]
    end = time.monotonic() + float(seconds)
    runs = 0
    with file_of_last_input(name, Path(directory)).open("wb") as last:
        for data in chain(corpus, mutations(corpus, int(seed), INPUT_MAX)):
            os.pwrite(last.fileno(), len(data).to_bytes(_SIZE, "big") + data, 0)
            check(data)
            runs += 1
            if time.monotonic() > end:
                break
    print(f"#{runs}")


if __name__ == "__main__":
    main()
