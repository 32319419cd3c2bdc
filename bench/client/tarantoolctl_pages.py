"""Reads spaces through `tarantoolctl connect`: `bench.lib.query_process` describes its input and output.

echo '{"url": "127.0.0.1:3301", "space": "queue", "page_rows": 1000}' |
    python -m bench.client.tarantoolctl_pages tarantoolctl

The argument is the program. It sends each line of a terminal to the server as Lua code, and prints the
result, which the server formats as YAML. (Its input from a pipe or a file is one piece of code with one
result, so that each page would need a process.)
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import ExitStack
from typing import Any, Final, Self

from bench.lib.query_process import Answer, answer_queries

_FUNCTION: Final = (
    "local key, iterator = nil, 'ALL' "
    "function next_page() "
    "local page = box.space['{space}']:select(key, {{iterator = iterator, limit = {page_rows}}}) "
    "if #page > 0 then key, iterator = page[#page][1], 'GT' end "
    "return page end"
)
_CALL: Final = "next_page()"
_RECEIVE: Final = 2**20
_ROW: Final = b"- ["
_NO_ROW: Final = b"- []"


class Terminal:
    """A session of `tarantoolctl connect`, as a context manager.

    Parameters:
        program: its path.
        url: the server's host and port.
    """

    def __init__(self, program: str, url: str) -> None:
        self._command = [program, "connect", url]
        self._prompt = f"{url}> ".encode()

    def __enter__(self) -> Self:
        self._input, theirs = pty.openpty()
        self._process = subprocess.Popen(
            self._command,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TERM": "dumb"},
        )
        os.close(theirs)
        self._output()
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._input)
        self._process.terminate()
        self._process.communicate()

    def evaluate(self, code: str) -> bytes:
        """Evaluate a line of Lua code on the server, and return the printed result.

        Raises:
            EOFError: The program has ended.
        """
        os.write(self._input, code.encode() + b"\n")
        return self._output()

    def _output(self) -> bytes:
        """Return the output up to the next prompt."""
        assert self._process.stdout is not None
        found = bytearray()
        while not found.endswith(self._prompt):
            data = os.read(self._process.stdout.fileno(), _RECEIVE)
            if not data:
                raise EOFError(f"{self._command} has ended: {found.decode(errors='replace')}")
            found += data
        return bytes(found)


def read(terminal: Terminal, query: dict[str, Any]) -> int:
    """Read all rows, and return their number.

    Parameters:
        terminal: a session with the server.
        query: the query; the primary key of the space is its first field.
    """
    terminal.evaluate(_FUNCTION.format(**query))
    rows = 0
    while count := _rows_in(terminal.evaluate(_CALL)):
        rows += count
    return rows


def _rows_in(page: bytes) -> int:
    """Count the rows, whose fields are numbers and texts without brackets."""
    return page.count(_ROW) - page.count(_NO_ROW)


def main() -> None:
    """Read until the end of standard input."""
    terminals: dict[str, Terminal] = {}
    with ExitStack() as stack:

        def read_all(query: dict[str, Any]) -> Answer:
            url = query["url"]
            # Sessions stay open: the processor time of a process that has ended would not be measured.
            if url not in terminals:
                terminals[url] = stack.enter_context(Terminal(sys.argv[1], url))
            return {"rows": read(terminals[url], query)}

        answer_queries(read_all)


if __name__ == "__main__":
    main()
