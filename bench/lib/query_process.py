"""Processes that run queries on request: one JSON object per line for each query, and for each answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

Answer = dict[str, Any]
"""The result of a query: `seconds`, its duration, and what else the process reports."""


class QueryProcess:
    """Such a process, as a context manager.

    Parameters:
        command: the program and its arguments.
        is_idle: whether it gets only processor time that is idle otherwise.
    """

    def __init__(self, command: Sequence[str], *, is_idle: bool = False) -> None:
        self._command = command
        self._is_idle = is_idle

    def __enter__(self) -> Self:
        """Start the process."""
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, text=True)
        if self._is_idle:
            # Its children inherit this.
            os.sched_setscheduler(self.pid, os.SCHED_IDLE, os.sched_param(0))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the process."""
        self._process.communicate()

    def ask(self, query: Mapping[str, object]) -> Answer:
        """Send a query and wait for the answer.

        Parameters:
            query: the query.

        Raises:
            EOFError: The process has ended; its output says why.
            BrokenPipeError: The process had ended before.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(query) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise EOFError(f"{' '.join(self._command)} has not answered {json.dumps(query)}")
        found: Answer = json.loads(answer)
        return found

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid


def answer_queries(read: Callable[[dict[str, Any]], Answer]) -> None:
    """Answer queries until the end of standard input.

    Parameters:
        read: runs a query, and returns what to report besides its duration.
    """
    for line in sys.stdin:
        query = json.loads(line)
        begin = time.perf_counter()
        answer = read(query)
        print(json.dumps({"seconds": time.perf_counter() - begin} | answer), flush=True)
