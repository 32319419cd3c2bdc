"""The command `connect`: a console of a server, this one or Tarantool.

What it needs is imported when it runs: serving must not wait for rich and prompt_toolkit.
"""

from __future__ import annotations

import sys

from iproto_server.tools.operators.operator_command_line import URI, operator_command, server_uri


@operator_command(
    short_help="Run statements of Lua on a server.",
    epilog="""\
iproto-server connect admin@127.0.0.1:3301
echo 'return box.info.version' | iproto-server connect admin:secret@127.0.0.1:3301
iproto-server connect unix:/run/jobs.sock < migration.lua""",
)
@URI
def connect(uri: str) -> int:
    """Run statements of Lua on a server that has Lua, and show what they return.

    On a terminal: the arrow keys bring back earlier lines, which are kept in ~/.iproto_server_history, Tab
    completes names, an incomplete statement goes on in the next line, and long answers are paged; \\help
    shows the commands.

    Otherwise: the standard input is one statement; lines with commands (\\set output table) may precede it.
    Exit status 1 if it fails; the error is one line on stderr.

    The user needs the right to execute on the universe.
    """
    server = server_uri(uri)
    if sys.stdin.isatty() and sys.stdout.isatty():
        from iproto_server.tools.console.interactive import interact

        interact(server)
        return 0
    from iproto_server.tools.console.script import run_script

    return run_script(server, sys.stdin.buffer)
