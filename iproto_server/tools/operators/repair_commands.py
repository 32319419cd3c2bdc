"""The commands that change tasks: `release`, `bury`, `delete`, `move` and `requeue`."""

from __future__ import annotations

import sys

import click

from iproto_server.text.counting import counted
from iproto_server.tools.operators.operator_command_line import (
    JSON,
    QUEUE,
    URI,
    YES,
    Failure,
    ask,
    connected,
    operator_command,
    print_json,
)

_IDS = click.argument("ids", metavar="ID...", nargs=-1, required=True)


def _wanted_ids(ids: tuple[str, ...]) -> list[str]:
    """The ids; a single - stands for the lines of stdin."""
    if ids != ("-",):
        return list(ids)
    found = [line.strip().strip('"') for line in sys.stdin]
    found = [line for line in found if line]
    if not found:
        raise Failure("there is no id on stdin")
    return found


def _repair(
    action: str, done: str, uri: str, queue: str, ids: tuple[str, ...], yes: bool, as_json: bool, *target: str
) -> None:
    wanted = _wanted_ids(ids)
    into = f' to "{target[0]}"' if target else ""
    ask(f'{action.capitalize()} {counted(len(wanted), "task")} of "{queue}"{into}?', len(wanted) > 1, yes)
    with connected(uri) as client:
        repaired = client.repair(action, queue, wanted, *target)
    if as_json:
        for task in repaired:
            print_json(task)
    else:
        click.echo(f"{done} {counted(len(repaired), 'task')}")


@operator_command(
    short_help="Make tasks ready that are taken, delayed or buried.",
    epilog="""\
iproto-server release 127.0.0.1:3301 queue 1600000000000000000
iproto-server tasks --json 127.0.0.1:3301 queue --state taken --older 5m | jq .id |
    iproto-server release --yes 127.0.0.1:3301 queue -""",
)
@URI
@QUEUE
@_IDS
@YES
@JSON
def release(uri: str, queue: str, ids: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Make tasks ready that are taken by any session, delayed or buried. The ID - reads ids from stdin.

    The session that had taken a task gets an error when it acknowledges it. Up to a thousand tasks change
    together or, if one of them is not there, not at all.
    """
    _repair("release", "released", uri, queue, ids, yes, as_json)


@operator_command(short_help="Bury tasks.", epilog="iproto-server bury 127.0.0.1:3301 jobs 17 18")
@URI
@QUEUE
@_IDS
@YES
@JSON
def bury(uri: str, queue: str, ids: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Bury tasks in any state: nobody takes them until they are kicked or released. As release."""
    _repair("bury", "buried", uri, queue, ids, yes, as_json)


@operator_command(short_help="Delete tasks.", epilog="iproto-server delete 127.0.0.1:3301 jobs 17 18")
@URI
@QUEUE
@_IDS
@YES
@JSON
def delete(uri: str, queue: str, ids: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Delete tasks in any state, for good. As release."""
    _repair("delete", "deleted", uri, queue, ids, yes, as_json)


@operator_command(
    short_help="Move tasks to another queue.",
    epilog="iproto-server move 127.0.0.1:3301 jobs failed 17 18",
)
@URI
@QUEUE
@click.argument("target", metavar="TARGET")
@_IDS
@YES
@JSON
def move(uri: str, queue: str, target: str, ids: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Delete tasks, and put them into the queue TARGET, where they get new ids. As release."""
    _repair("move", "moved", uri, queue, ids, yes, as_json, target)


@operator_command(
    short_help="Put dead letters back into their queue.",
    epilog="""\
iproto-server requeue 127.0.0.1:3301 jobs_dlq 17
iproto-server tasks --json 127.0.0.1:3301 jobs_dlq | jq .id |
    iproto-server requeue --yes 127.0.0.1:3301 jobs_dlq -""",
)
@URI
@QUEUE
@_IDS
@YES
@JSON
def requeue(uri: str, queue: str, ids: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Put dead letters, which are in QUEUE, back into their queue, with no failed attempts. As release."""
    _repair("requeue", "put back", uri, queue, ids, yes, as_json)
