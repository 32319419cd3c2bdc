"""The commands that show a running server: `status`, `top`, `tasks`, `sessions` and `backlog`; and `call`.

What a command needs is imported when it runs: serving must not wait for rich and textual.
"""

from __future__ import annotations

import math
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from iproto_server.text.counting import counted
from iproto_server.tools.choice import Choice
from iproto_server.tools.command_line import Seconds, read_moment
from iproto_server.tools.operators.operator_command_line import (
    JSON,
    QUEUE,
    URI,
    Failure,
    complain,
    connected,
    json_argument,
    operator_command,
    print_json,
)

if TYPE_CHECKING:
    from iproto_server.tools.operators.operator_client import OperatorClient

_STATES: Final = ("ready", "taken", "delayed", "buried", "done")
_DATA_SIZE: Final = 200
"""Characters or bytes of a payload that a table needs at most."""
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def _read_duration(context: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    """Seconds, or a number with its unit."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)", text)
    if found is None:
        raise click.BadParameter(f'"{text}" is not a duration such as 30s, 5m, 2h or 1d')
    seconds = float(found[1]) * _SECONDS[found[2]]
    if math.isinf(seconds):
        raise click.BadParameter("the duration is too long")
    return seconds


# -- looking --


@operator_command(
    short_help="Call a procedure.",
    context_settings={"ignore_unknown_options": True},
    epilog="""\
iproto-server call 127.0.0.1:3301 queue.stats
iproto-server call admin@db.example.net:3301 queue.put '{"to": "ann"}' '{"delay": 60}'
iproto-server call unix:/run/jobs.sock box.info""",
)
@URI
@click.argument("name", metavar="NAME")
@click.argument("arguments", metavar="[ARG]...", nargs=-1, type=click.UNPROCESSED)
@JSON
def call(uri: str, name: str, arguments: tuple[str, ...], as_json: bool) -> None:
    """Call a procedure of a server, this one or Tarantool, and print what it returns.

    An argument is JSON (5, null, {"delay": 60}), or else a string; one that begins with {, [ or " must be
    JSON. Each value is one line of JSON; with --json all are one list.
    """
    given = [json_argument(text, f"argument {number}") for number, text in enumerate(arguments, 1)]
    with connected(uri) as client:
        values = client.call(name, *given)
    for value in [values] if as_json else values:
        print_json(value)


@operator_command(
    short_help="Show the state of a server.",
    epilog="""\
iproto-server status 127.0.0.1:3301
iproto-server status --json 127.0.0.1:3301 | jq .requests.per_second""",
)
@URI
@JSON
def status(uri: str, as_json: bool) -> None:
    """Show version, memory, connections, requests, log, snapshots, event-loop latency and queues.

    Of a Tarantool, what box.info tells.
    """
    from iproto_server.tools.operators.operator_client import NotAnOperatorsServerError

    with connected(uri) as client:
        queues: list[dict[str, Any]] = []
        try:
            found = client.status()
            queues = client.queues()
        except NotAnOperatorsServerError:
            found = _status_of_tarantool(client)
    if as_json:
        print_json({**found, "queues": queues})
        return
    from iproto_server.tools.operators.tables import show_queues, show_status

    show_status(client.address, found)
    if queues:
        click.echo()
        show_queues(queues)


def _status_of_tarantool(client: OperatorClient) -> dict[str, Any]:
    values = client.call("box.info")
    info = values[0] if values and isinstance(values[0], dict) else {}
    return {
        "version": f"{info.get('package', 'Tarantool')} {info.get('version', '')}".strip(),
        "pid": info.get("pid"),
        "uptime": info.get("uptime"),
        "read_only": bool(info.get("ro")),
        "lsn": info.get("lsn"),
        "vclock": info.get("vclock"),
        "instance": info.get("uuid"),
    }


@operator_command(
    short_help="Watch a server.",
    epilog="""\
iproto-server top 127.0.0.1:3301
iproto-server top --interval 5 admin@db.example.net:3301
iproto-server top --json --count 3 127.0.0.1:3301""",
)
@URI
@click.option(
    "--interval",
    metavar="SECONDS",
    type=Seconds(0.1, 3600),
    default=1.0,
    help="The time between two looks.  [default: 1]",
)
@click.option("--count", metavar="COUNT", type=click.IntRange(1), help="End after so many looks.")
@JSON
def top(uri: str, interval: float, count: int | None, as_json: bool) -> None:
    """Watch rates, the depth of queues by state, the oldest ready task and the event loop's latency.

    Keys: q ends, p pauses, s sorts by the number of ready tasks or by name.
    """
    from iproto_server.tools.operators.rates import Looks

    with connected(uri) as client:
        looks = Looks(client)
        if as_json:
            for number in range(count or sys.maxsize):
                if number:
                    time.sleep(interval)
                print_json(looks.look())
            return
        looks.look()
        from iproto_server.tools.operators.top import Top

        failure = Top(looks, interval, count).run()
    if failure is not None:
        raise Failure(failure)


@operator_command(
    short_help="Show tasks of a queue.",
    epilog="""\
iproto-server tasks 127.0.0.1:3301 queue --state taken --older 5m
iproto-server tasks --json 127.0.0.1:3301 queue --state buried | jq .id""",
)
@URI
@QUEUE
@click.option("--state", type=Choice("state", _STATES), help="Only tasks in this state.")
@click.option(
    "--older",
    metavar="TIME",
    callback=_read_duration,
    help="Only tasks that are taken, or were put, for this long: 30s, 5m, 2h, 1d.",
)
@click.option(
    "--limit", metavar="COUNT", type=click.IntRange(1), default=100, help="How many.  [default: 100]"
)
@JSON
def tasks(uri: str, queue: str, state: str | None, older: float | None, limit: int, as_json: bool) -> None:
    """Show tasks of a queue in the order in which they are taken, or of ids if no state is given.

    With --json, each task is one line.
    """
    with connected(uri) as client:
        # A table shows the beginning of a payload.
        found = client.tasks(queue, state, older, limit, None if as_json else _DATA_SIZE)
        if as_json:
            for task in found:
                print_json(task)
            return
        shown = list(found)
        now = client.status()["time"]
    from iproto_server.tools.operators.tables import show_tasks

    if shown:
        show_tasks(shown, now)
    complain(f"{counted(len(shown), 'task')}" + (", maybe more: see --limit" if len(shown) == limit else ""))


@operator_command(
    short_help="Show who holds which task.",
    epilog="""\
iproto-server sessions 127.0.0.1:3301
iproto-server sessions --holding 127.0.0.1:3301""",
)
@URI
@click.option("--holding", is_flag=True, help="Only sessions that hold tasks.")
@click.option(
    "--limit",
    metavar="COUNT",
    type=click.IntRange(1, 1000),
    default=10,
    help="How many tasks of each session.  [default: 10]",
)
@JSON
def sessions(uri: str, holding: bool, limit: int, as_json: bool) -> None:
    """Show the connected sessions: user, address, since when, and the tasks that they have taken.

    The session that has held a task for longest comes first.
    """
    with connected(uri) as client:
        found = client.sessions(limit)
        now = client.status()["time"]
    found = [session for session in found if session["taken"] or not holding]
    found.sort(key=lambda session: (session["oldest_taken_at"] or now, session["id"]))
    if as_json:
        for session in found:
            print_json(session)
        return
    from iproto_server.tools.operators.tables import show_sessions

    if found:
        show_sessions(found, now)
    else:
        complain("no session holds a task" if holding else "there are no sessions")


PATH = click.Path(path_type=Path, readable=False)


def _read_now(context: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    return time.time() if text == "present" else read_moment(context, parameter, text)


@operator_command(
    short_help="Show depth and age of all queues.",
    epilog="""\
iproto-server backlog 127.0.0.1:3301
iproto-server backlog ./data
iproto-server backlog ./data --now present
iproto-server backlog ./data --wal-dir /fast/logs --json""",
)
@click.argument("source", metavar="URI_OR_DIR")
@click.option("--wal-dir", metavar="DIR", type=PATH, help="Where the logs are, if not in DIR.")
@click.option("--memtx-dir", metavar="DIR", type=PATH, help="Where the snapshots are, if not in DIR.")
@click.option(
    "--now",
    metavar="TIME",
    callback=_read_now,
    help="Compute ages in files at this time, or `present`.  [default: that of the newest change]",
)
@JSON
def backlog(
    source: str, wal_dir: Path | None, memtx_dir: Path | None, now: float | None, as_json: bool
) -> None:
    """Show the number of tasks by state, and the age of the oldest ready one, for all queues.

    Of a server, or of the snapshot and logs in its working directory, which another process may be using. In
    files, ages begin with the put and end with the newest change, as in Spark's reports: files of last month
    show last month's state. Relative --wal-dir and --memtx-dir start from DIR.
    """
    found = _backlog_of(source, wal_dir, memtx_dir, now)
    if as_json:
        for queue in found:
            print_json(queue)
        return
    from iproto_server.tools.operators.shown import moment
    from iproto_server.tools.operators.tables import show_queues

    if found:
        if "as_of" in found[0]:
            of = "the newest change" if now is None else "--now"
            click.echo(f"as of {moment(found[0]['as_of'])}, the time of {of}")
        show_queues(found)
    else:
        complain("there are no queues")


def _backlog_of(
    source: str, wal_dir: Path | None, memtx_dir: Path | None, now: float | None
) -> list[dict[str, Any]]:
    from iproto_server.tools.operators.backlog import NoDatabaseError, backlog_of_directory, backlog_of_queues

    directory = Path(source)
    if not source or not directory.is_dir():
        if wal_dir is not None or memtx_dir is not None:
            raise click.UsageError("--wal-dir and --memtx-dir are for a directory, and this is none")
        if now is not None:
            raise click.UsageError("--now is for a directory: a server tells the present state")
        with connected(source) as client:
            return backlog_of_queues(client.queues())
    from iproto_server.errors import BoxError
    from iproto_server.storage.errors import StorageError

    try:
        return backlog_of_directory(directory / (memtx_dir or ""), directory / (wal_dir or ""), now)
    except (NoDatabaseError, StorageError) as error:
        raise Failure(str(error)) from error
    except BoxError as error:
        raise Failure(f"{directory}: {error.message}") from error
    except OSError as error:
        raise Failure(f"cannot read {error.filename or directory}: {error.strerror}") from error


# -- repairing --


# -- queues --
