"""The command lines of `backup` and `restore`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iproto_server.storage.errors import StorageError
from iproto_server.tools.command_line import TIMEOUT, ExampleCommand, complain, read_moment

if TYPE_CHECKING:
    from iproto_server.tools.backup.backup_source import BackupSource

PATH = click.Path(path_type=Path, readable=False)


@click.command(
    cls=ExampleCommand,
    short_help="Copy a database, also of a running server.",
    epilog="""\
iproto-server backup ./data /backups/monday
iproto-server backup ./data /backups/monday-noon --since /backups/monday
iproto-server backup ./data /backups/monday --wal-dir /fast/logs
iproto-server backup admin@db.example.com:3301 /backups/monday""",
)
@click.argument("source", metavar="SOURCE")
@click.argument("directory", metavar="DIR", type=PATH)
@click.option(
    "--since",
    metavar="BACKUP",
    type=PATH,
    help="Continue this backup, or continuation of one: copy only the rows that came after it.",
)
@click.option("--wal-dir", metavar="DIR", type=PATH, help="Where the logs are, if not in SOURCE.")
@click.option("--memtx-dir", metavar="DIR", type=PATH, help="Where the snapshots are, if not in SOURCE.")
@TIMEOUT
def backup(
    source: str, directory: Path, since: Path | None, wal_dir: Path | None, memtx_dir: Path | None
) -> int:
    """Copy the newest snapshot of SOURCE, and the logs after it, to the new DIR.

    SOURCE is a server's working directory, or the address of a running one, [USER[:PASSWORD]@]HOST:PORT or
    [USER[:PASSWORD]@]unix:PATH, with ?transport=ssl&ssl_ca_file=ca.crt behind it for TLS; the user needs all
    rights. What is a directory is not taken for an address.

    The server may be running: the copy is the database at the moment of its last row. It is verified as
    `check` does, and DIR appears when it is complete and on disk. Prints the files, and the ranges of LSNs
    and times. Relative --wal-dir and --memtx-dir start from SOURCE.

    Exit status 0: saved; 1: not saved; 2: there is nothing to save.
    """
    from iproto_server.storage.backup_set import NothingToBackUpError
    from iproto_server.tools.backup.backup import back_up, continue_backup

    def run() -> int:
        with ExitStack() as opened:
            found = _source(opened, source, wal_dir, memtx_dir)
            try:
                saved = (
                    back_up(found, directory) if since is None else continue_backup(found, since, directory)
                )
            except NothingToBackUpError as error:
                complain(str(error))
                return 2
        for line in saved.lines(directory):
            click.echo(line)
        return 0

    return _reporting(run)


def _source(opened: ExitStack, source: str, wal_dir: Path | None, memtx_dir: Path | None) -> BackupSource:
    """A directory, or a server if there is no such directory and it can be an address."""
    from iproto_server.tools.backup.backup_source import DirectorySource
    from iproto_server.tools.client import ServerUri

    directory = Path(source)
    try:
        ServerUri.parse(source)
    except ValueError as error:
        if not source or ("://" in source and not directory.exists()):
            raise click.BadParameter(str(error), param_hint="SOURCE") from None
        is_address = False
    else:
        is_address = not directory.exists()
    if not is_address:
        return DirectorySource(directory / (memtx_dir or ""), directory / (wal_dir or ""))
    if wal_dir is not None or memtx_dir is not None:
        raise click.UsageError("--wal-dir and --memtx-dir are for a directory, and this is none")
    from iproto_server.tools.backup.backup_server import ServerSource
    from iproto_server.tools.operators.operator_command_line import server_uri

    return opened.enter_context(ServerSource(server_uri(source)))


@click.command(
    cls=ExampleCommand,
    short_help="Build a database's directory from backups.",
    epilog="""\
iproto-server restore /backups/monday ./data
iproto-server restore /backups/monday /backups/monday-noon ./data --to-time 2026-01-31T11:59:00Z
iproto-server restore /backups/monday ./data --to-lsn 482113""",
)
@click.argument("backups", metavar="BACKUP...", nargs=-1, required=True, type=PATH)
@click.argument("directory", metavar="DIR", type=PATH)
@click.option(
    "--to-lsn", metavar="LSN", type=click.IntRange(0, 2**63 - 1), help="Leave out what came after this LSN."
)
@click.option(
    "--to-time",
    metavar="TIME",
    callback=read_moment,
    help="Leave out what came after this time: seconds since 1970, or as in 2026-01-31T12:00:00Z.",
)
def restore(backups: tuple[Path, ...], directory: Path, to_lsn: int | None, to_time: float | None) -> int:
    """Build the working directory DIR of a server, or of Tarantool, from a backup and its continuations.

    The continuations follow the backup in their order. A transaction is restored as a whole or not at all:
    the first one with a row after the LSN or time is left out, and all after it. DIR must be new or empty; it
    appears when it is complete, verified and on disk. The database remains the same instance: do not run
    both.

    Exit status 0: restored; 1: not restored.
    """
    from iproto_server.tools.backup.backup_files import lsn_text, time_text
    from iproto_server.tools.backup.restore import restore as restore_backup

    if to_lsn is not None and to_time is not None:
        raise click.UsageError("--to-lsn and --to-time exclude each other")

    def run() -> int:
        restored = restore_backup(backups, directory, to_lsn=to_lsn, to_time=to_time)
        for line in restored.saved.lines(directory):
            click.echo(line)
        begin, reachable = restored.saved.begin, restored.reachable
        click.echo(
            f"can be reached: LSN {lsn_text(begin.vclock)} to {lsn_text(reachable.vclock)}, "
            f"{time_text(begin.time)} to {time_text(reachable.time)}"
        )
        return 0

    return _reporting(run)


def _reporting(run: Callable[[], int]) -> int:
    """Run a command, and report its error in one line."""
    from iproto_server.storage.backup_set import BackupError
    from iproto_server.tools.client import ClientError
    from iproto_server.tools.operators.operator_client import CallError

    try:
        return run()
    except (BackupError, StorageError, ClientError, CallError) as error:
        complain(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        complain(f"{where}{error.strerror or error}")
    return 1
