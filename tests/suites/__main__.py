"""The command `python -m tests.suites NAME [PART ...]`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.suites.catalogue import SUITES, SettingError
from tests.suites.programs import our_tarantool, real_tarantool
from tests.suites.results import Results, report


def main() -> int:
    """Run a suite, and print its results.

    Returns:
        The exit status: 0 if every test that passes with the real Tarantool passes with `iproto-tarantool`,
        1 if some fails, 2 if an environment variable is missing or wrong.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.suites", description=__doc__)
    parser.add_argument("name", choices=sorted(SUITES))
    parser.add_argument("part", nargs="*", help="run only files or tests whose names contain this")
    parser.add_argument("--only", choices=["ours", "real"], help="run only with one of the two programs")
    given = parser.parse_args()
    suite = SUITES[given.name]
    real = shutil.which("tarantool")
    results: dict[str, Results] = {}
    try:
        checkout = suite.checkout()
        for program in ("real", "ours"):
            if given.only not in (None, program):
                continue
            if program == "real" and real is None:
                raise SettingError(
                    "tarantool is not installed: apt-get install tarantool, or give --only ours"
                )
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary)
                if program == "ours":
                    our_tarantool(folder)
                else:
                    assert real is not None
                    real_tarantool(folder, real)
                results[program] = suite.run(checkout, folder, tuple(given.part))
    except SettingError as error:
        print(error, file=sys.stderr)
        return 2
    for line in report(given.name, results):
        print(line)
    ours, theirs = results.get("ours", Results()), results.get("real")
    return int(any(theirs is None or name in theirs.passed for name in ours.failed))


if __name__ == "__main__":
    sys.exit(main())
