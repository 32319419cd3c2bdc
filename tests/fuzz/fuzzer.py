"""One run of libFuzzer, by atheris, on one target: `python -m tests.fuzz.fuzzer TARGET LIBFUZZER-OPTIONS`.

It is a separate process, because libFuzzer ends its process.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Final

import atheris

from tests.fuzz.target import target

ROOM: Final = 512 * 1024**2
"""The bytes by which the process may grow: more is a finding."""


def main() -> None:
    """Fuzz until libFuzzer's limit is reached or something is found."""
    name, *options = sys.argv[1:]
    with atheris.instrument_imports(include=["iproto_server", "pyspark_tarantool"]):
        check = target(name).check
    mapped = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + ROOM, mapped + ROOM))
    atheris.Setup([sys.argv[0], *options], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
