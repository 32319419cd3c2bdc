"""Entry point of `iproto-tarantool`.

Exit status 0: the script has ended, or a signal has ended the process; 1: an error of the script, or there
is no LuaJIT; 64: the command line is wrong; otherwise what `os.exit` was given, or the number of the system's
error that keeps the script from being read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

from iproto_server.standard_streams import open_standard_streams
from iproto_server.tarantool_cli.command_line import CommandLine, UsageError

USAGE: Final = 64
"""The status for a wrong command line, EX_USAGE of `sysexits.h`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters:
        arguments: the command line without the program's name; None takes the process's own.

    Returns:
        The exit status of a process that has run no script. With a script, the process ends here.
    """
    open_standard_streams()
    name = sys.argv[0]
    try:
        line = CommandLine(sys.argv[1:] if arguments is None else arguments)
    except UsageError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return USAGE
    if line.answer:
        from iproto_server.tarantool_cli.texts import help_text, version_text

        print(help_text() if line.answer == "h" else version_text())
        return 0
    if line.script is not None and line.script != "-":
        unreadable = _why_unreadable(line.script)
        if unreadable:
            print(f"Can't open script {line.script}: {os.strerror(unreadable)}")
            return unreadable
    return _run(line, name)


def _run(line: CommandLine, name: str) -> int:
    from iproto_server.lua.runtime import LuaIsMissing
    from iproto_server.tarantool_cli.program import Program, end_process

    try:
        program = Program()
    except LuaIsMissing as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    return end_process(program.run(line, os.path.abspath(name), name))


def _why_unreadable(path: str) -> int:
    """The number of the system's error for a file that cannot be read; 0 if it can."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError as error:
        return error.errno or 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
