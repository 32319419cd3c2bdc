"""The commands that change queues: `kick`, `pause`, `drain`, `resume` and `configure`."""

from __future__ import annotations

import json

import click

from iproto_server.text.counting import counted
from iproto_server.tools.operators.operator_command_line import (
    JSON,
    QUEUE,
    URI,
    YES,
    ask,
    connected,
    json_argument,
    operator_command,
    print_json,
)


@operator_command(short_help="Make buried tasks ready.", epilog="iproto-server kick 127.0.0.1:3301 jobs 100")
@URI
@QUEUE
@click.argument("count", metavar="COUNT", type=click.IntRange(1))
@YES
@JSON
def kick(uri: str, queue: str, count: int, yes: bool, as_json: bool) -> None:
    """Make up to COUNT buried tasks ready, the first ones first."""
    ask(f'Kick up to {counted(count, "task")} of "{queue}"?', count > 1, yes)
    with connected(uri) as client:
        kicked = client.kick(queue, count)
    if as_json:
        print_json({"kicked": kicked})
    else:
        click.echo(f"kicked {counted(kicked, 'task')}")


@operator_command(
    short_help="Stop handing out tasks; consumers keep waiting.",
    epilog="iproto-server pause 127.0.0.1:3301 jobs",
)
@URI
@QUEUE
@JSON
def pause(uri: str, queue: str, as_json: bool) -> None:
    """Stop handing out tasks until the queue is resumed, also after a restart.

    Consumers keep waiting. New tasks can be put, and taken ones acknowledged.
    """
    _change("pause", "paused", uri, queue, as_json)


@operator_command(
    short_help="Refuse new tasks while consumers empty the queue.",
    epilog="iproto-server drain 127.0.0.1:3301 jobs",
)
@URI
@QUEUE
@JSON
def drain(uri: str, queue: str, as_json: bool) -> None:
    """Refuse new tasks until the queue is resumed, also after a restart, while consumers empty the queue."""
    _change("drain", "draining", uri, queue, as_json)


@operator_command(
    short_help="End the pause, or draining, of a queue.", epilog="iproto-server resume 127.0.0.1:3301 jobs"
)
@URI
@QUEUE
@JSON
def resume(uri: str, queue: str, as_json: bool) -> None:
    """End the pause, or draining, of a queue."""
    _change("resume", "running", uri, queue, as_json)


@operator_command(
    short_help="Change the options of a queue.",
    epilog="""\
iproto-server configure 127.0.0.1:3301 jobs release_limit=5 release_limit_policy=DLQ
iproto-server configure 127.0.0.1:3301 jobs 'retry={"delay": 10, "factor": 2, "max_delay": 600}'
iproto-server configure 127.0.0.1:3301 jobs release_limit=null""",
)
@URI
@QUEUE
@click.argument("options", metavar="NAME=VALUE...", nargs=-1, required=True)
@JSON
def configure(uri: str, queue: str, options: tuple[str, ...], as_json: bool) -> None:
    """Change options of a queue's policy: limits of attempts, retries, dead letters.

    A VALUE is JSON, or else a string; null restores an option. The options in effect are printed.
    """
    given: dict[str, object] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise click.BadParameter(f'"{option}" is not NAME=VALUE', param_hint="NAME=VALUE")
        if name in given:
            raise click.BadParameter(f"{name} is given twice", param_hint="NAME=VALUE")
        given[name] = json_argument(value, name)
    with connected(uri) as client:
        changed = client.change("configure", queue, given)
    if as_json:
        print_json(changed)
        return
    for name, value in sorted(changed["settings"].items()):
        click.echo(f"{name}={value if isinstance(value, str) else json.dumps(value)}")


def _change(action: str, done: str, uri: str, queue: str, as_json: bool) -> None:
    with connected(uri) as client:
        changed = client.change(action, queue)
    if as_json:
        print_json(changed)
    else:
        click.echo(f'the queue "{changed["name"]}" is {done}')
