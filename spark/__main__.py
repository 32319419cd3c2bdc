"""Lists and runs the jobs.

python -m pyspark_tarantool
python -m pyspark_tarantool backlog ./data --queue tubes
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from pyspark_tarantool.extras import MissingExtraError, explain_missing

JOBS: Final = {
    "backlog": "Report the tasks that wait in each queue.",
    "lifecycle": "Report how long tasks waited, how long work on them took, and how they ended.",
    "suspects": "Find tasks and queues that need attention.",
    "capacity": "Report how busy workers are, and where backlogs are heading.",
    "compare": "Compare one day of the queues with another.",
    "export": "Export a space's tuples, a queue's tasks, or logged changes.",
}
"""The jobs, and the first line of each one's help."""

PROGRAM: Final = "pyspark_tarantool"


def overview() -> str:
    """The list of jobs, as `python -m pyspark_tarantool` prints it."""
    width = max(map(len, JOBS))
    lines = [f"  {name:{width}}  {summary}" for name, summary in JOBS.items()]
    return "\n".join(
        [
            f"Usage: python -m {PROGRAM} JOB DIR... [OPTIONS]",
            "",
            "Jobs that read snapshots and logs of queues:",
            *lines,
            "",
            f"python -m {PROGRAM} JOB --help describes a job.",
        ]
    )


def main(arguments: Sequence[str]) -> int:
    """Run the job that the first argument names; without arguments, list the jobs.

    Parameters:
        arguments: The command line without the program's name.

    Returns:
        The exit status: that of the job; 2 if there is no such job; 1 if the extra `spark` is not installed.
    """
    name, *others = arguments or ["--help"]
    if name in ("-h", "--help"):
        print(overview())
        return 0
    if name not in JOBS:
        print(f"{PROGRAM}: there is no job '{name}': there are {', '.join(JOBS)}", file=sys.stderr)
        return 2
    try:
        with explain_missing():
            job = getattr(import_module(f"{PROGRAM}.{name}"), name)
    except MissingExtraError as error:
        print(f"{PROGRAM}.{name}: {error}", file=sys.stderr)
        return 1
    status: int = job.run(others)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
