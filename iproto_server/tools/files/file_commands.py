"""The command lines of `cat`, `check` and `play`.

What a tool needs is imported when it runs: serving must not wait for the tools' libraries.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iproto_server.storage.errors import XlogError
from iproto_server.text.counting import counted
from iproto_server.tools.choice import Choice
from iproto_server.tools.command_line import (
    PATH,
    TIMEOUT,
    ExampleCommand,
    Function,
    complain,
    read_moment,
    with_timeout,
)

if TYPE_CHECKING:
    from iproto_server.tools.files.selection import Selection


def _read_spaces(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> list[int | str]:
    """Spaces by id or name."""
    if "" in texts:
        raise click.BadParameter("the name is empty")
    return [int(text) if re.fullmatch(r"[0-9]{1,10}", text) else text for text in texts]


_LSN = click.IntRange(0, 2**64 - 1)

_SELECTION = (
    click.option(
        "--space",
        "spaces",
        metavar="SPACE",
        callback=_read_spaces,
        multiple=True,
        help="Only rows of this space, by id, or by name if the files say whose it is. May be repeated.",
    ),
    click.option(
        "--from", "--from-lsn", "from_lsn", metavar="LSN", type=_LSN, default=0, help="The first LSN."
    ),
    click.option(
        "--to",
        "--to-lsn",
        "to_lsn",
        metavar="LSN",
        type=_LSN,
        help="The LSN to end before, not shown itself.",
    ),
    click.option(
        "--timestamp",
        "before",
        metavar="TIME",
        callback=read_moment,
        help="The moment to end before: seconds since 1970, or as in 2026-01-31T12:00:00Z.",
    ),
    click.option(
        "--replica",
        "replicas",
        metavar="ID",
        type=click.IntRange(0, 31),
        multiple=True,
        help="Only rows that this member of the replica set made. May be repeated.",
    ),
    click.option(
        "--show-system",
        is_flag=True,
        help="Also rows of system spaces (up to 511), which are left out otherwise.",
    ),
)


def _selection_options(function: Function) -> Function:
    """Give a command the options that choose rows."""
    for option in reversed(_SELECTION):
        function = option(function)
    return function


_FILES = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PATH)


def _selection(arguments: dict[str, Any]) -> Selection:
    from iproto_server.tools.files.selection import Selection

    return Selection(**arguments)


@click.command(
    cls=ExampleCommand,
    short_help="Show the rows of logs and snapshots.",
    epilog="""\
iproto-server cat ./data
iproto-server cat data/*.snap data/*.xlog
iproto-server cat --format json --space queue data/*.snap data/*.xlog
iproto-server cat --from 1000 --to 2000 --show-system data/00000000000000000000.xlog
iproto-server cat --format lua --space 512 --timestamp 2026-01-31T12:00:00Z data/*.xlog""",
)
@_FILES
@click.option(
    "--format",
    "shown_as",
    type=Choice("format", ["yaml", "json", "lua"]),
    default="yaml",
    help="One YAML document, JSON line or Lua statement per row.  [default: yaml]",
)
@_selection_options
def cat(files: tuple[Path, ...], shown_as: str, **choice: Any) -> int:
    """Show the rows of logs (.xlog) and snapshots (.snap), of this server or Tarantool 1.7 to 3.x.

    Options and output are those of `tarantoolctl cat`. Of a directory, all files are shown in the order of
    their first LSN. A file may be in use by a server. What is damaged is passed over and named on stderr, and
    the exit status is 1.
    """
    from iproto_server.tools.files.cat import FileShow
    from iproto_server.tools.files.json_record import format_json
    from iproto_server.tools.files.lua_record import format_lua
    from iproto_server.tools.files.yaml_record import format_yaml

    row_format = {"yaml": format_yaml, "json": format_json, "lua": format_lua}[shown_as]
    file_show = FileShow(_selection(choice), row_format, sys.stdout.buffer, complain)
    try:
        for file in files:
            file_show.show_all(file, end="...\n\n" if shown_as == "yaml" else "")
    except BrokenPipeError:
        # Whoever reads has seen enough. Python would complain when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    file_show.finish()
    return 0 if file_show.intact else 1


@click.command(
    cls=ExampleCommand,
    short_help="Send the rows of logs and snapshots to a server.",
    epilog="""\
iproto-server play 127.0.0.1:3301 data/00000000000000000000.xlog
iproto-server play admin:secret@db.example.net:3301 --space 512 data/*.xlog
iproto-server play unix:/run/jobs.sock --from 1000 --to 2000 data/*.xlog""",
)
@click.argument("uri", metavar="URI")
@_FILES
@_selection_options
@TIMEOUT
def play(uri: str, files: tuple[Path, ...], **choice: Any) -> int:
    """Send the rows of logs (.xlog) and snapshots (.snap) to a running server, this one or Tarantool.

    URI is [USER:PASSWORD@]HOST:PORT or [USER:PASSWORD@]unix:PATH, with ?transport=ssl&ssl_ca_file=FILE behind
    it for TLS. Rows are sent as the requests they are, in
    order; the first that the server refuses, or that cannot be read, ends the work with exit status 1. The
    spaces must be there already: rows of system spaces are left out unless --show-system is given. Exit
    status 1, too, if no row was sent.
    """
    from iproto_server.tools.client import ServerUri
    from iproto_server.tools.files.play import PlayError, play_files
    from iproto_server.tools.files.progress import RowProgress

    try:
        server = with_timeout(ServerUri.parse(uri))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="URI") from None
    progress = RowProgress(sys.stderr)
    selection = _selection(choice)
    try:
        rows = play_files(server, files, selection, progress.show)
        progress.end(rows)
    except (PlayError, XlogError) as error:
        progress.end()
        complain(str(error))
        return 1
    except OSError as error:
        progress.end()
        complain(f"cannot read {error.filename or 'a file'}: {error.strerror}")
        return 1
    for name in selection.unknown_names:
        complain(f'no space is called "{name}" in these files: try its id')
    if not rows and not selection.unknown_names:
        system = "" if choice["show_system"] else "; rows of system spaces need --show-system"
        complain(f"nothing was sent: no row of these files matches{system}")
    return 0 if rows else 1


@click.command(
    cls=ExampleCommand,
    short_help="Verify the files of a database.",
    epilog="""\
iproto-server check ./data
iproto-server check ./data --wal-dir /fast/logs --memtx-dir ./data/snapshots""",
)
@click.argument("directory", metavar="DIR", type=PATH)
@click.option("--wal-dir", metavar="DIR", type=PATH, help="Where the logs are, if not in DIR.")
@click.option(
    "--memtx-dir",
    metavar="DIR",
    type=PATH,
    help="Where the snapshots are, if not in DIR.",
)
def check(directory: Path, wal_dir: Path | None, memtx_dir: Path | None) -> int:
    """Verify that the files in a server's working directory are intact and make a consistent database.

    Reads every snapshot and log, then loads the newest snapshot with the logs behind it, and checks rows
    against formats and indexes against rows. Nothing is changed. Each problem is one line on stdout; what is
    worth knowing but no problem, such as the torn end of the last log, is a line that begins with "note:".
    Relative --wal-dir and --memtx-dir start from DIR.

    Exit status 0: consistent; 1: there are problems; 2: there is nothing to check, or it cannot be read.
    """
    from iproto_server.tools.files.check import NothingToCheckError, check_database
    from iproto_server.tools.files.check_files import Findings

    findings = Findings(problem=click.echo, note=lambda text: click.echo(f"note: {text}"))
    try:
        rows = check_database(directory / (memtx_dir or ""), directory / (wal_dir or ""), findings)
    except NothingToCheckError as error:
        complain(str(error))
        return 2
    except OSError as error:
        complain(f"cannot read {error.filename or directory}: {error.strerror}")
        return 2
    click.echo(
        f"{counted(findings.snapshots, 'snapshot')}, {counted(findings.logs, 'log')}, "
        f"{'no database' if rows is None else counted(rows, 'row')}: "
        f"{counted(findings.problems, 'problem') if findings.problems else 'consistent'}"
    )
    return 1 if findings.problems else 0
