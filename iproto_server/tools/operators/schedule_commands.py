"""The commands for schedules of a running server."""

from __future__ import annotations

from typing import Any

import click

from iproto_server.text.strict_json import parse_json
from iproto_server.tools.choice import Choice
from iproto_server.tools.operators.operator_command_line import (
    JSON,
    URI,
    complain,
    connected,
    json_argument,
    operator_command,
    print_json,
)

_NAME = click.argument("name", metavar="NAME")


def _read_options(context: click.Context, parameter: click.Parameter, text: str | None) -> dict[str, Any]:
    """A JSON object."""
    if text is None:
        return {}
    try:
        found = parse_json(text)
    except ValueError as error:
        raise click.BadParameter(f"this is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise click.BadParameter('give an object such as {"pri": 1}')
    return found


@operator_command(
    short_help="Put a task periodically.",
    epilog="""\
iproto-server schedule 127.0.0.1:3301 nightly queue '30 2 * * *' '{"kind": "report"}'
iproto-server schedule 127.0.0.1:3301 nightly mails '30 2 * * *' --timezone Europe/Berlin --missed all""",
)
@URI
@_NAME
@click.argument("queue", metavar="QUEUE")
@click.argument("cron", metavar="CRON")
@click.argument("data", metavar="[DATA]", required=False)
@click.option(
    "--timezone", metavar="ZONE", default="UTC", help="The time zone of CRON: Europe/Berlin.  [default: UTC]"
)
@click.option(
    "--missed",
    type=Choice("rule for missed times", ("latest", "all", "none")),
    default="latest",
    help="For which missed due times tasks are put.  [default: latest]",
)
@click.option(
    "--options", metavar="JSON", callback=_read_options, help="Options of each put: '{\"pri\": 1}'."
)
@JSON
def schedule(
    uri: str,
    name: str,
    queue: str,
    cron: str,
    data: str | None,
    timezone: str,
    missed: str,
    options: dict[str, Any],
    as_json: bool,
) -> None:
    """Create or replace the schedule NAME, which puts a task into QUEUE at each due time of CRON.

    CRON is one argument with five fields (minute, hour, day of month, month, day of week), or six with the
    second first. DATA is JSON, or else a string. Due times before now lead to no task.
    """
    definition = {
        "queue": queue,
        "cron": cron,
        "timezone": timezone,
        "missed": missed,
        "data": None if data is None else json_argument(data, "DATA"),
        "options": options,
    }
    with connected(uri) as client:
        found = client.schedule(name, definition)
    if as_json:
        print_json(found)
        return
    from iproto_server.tools.operators.shown import moment, printable

    click.echo(f'scheduled "{printable(name)}", next due {moment(found["next_due"])}')


@operator_command(short_help="Remove a schedule.", epilog="iproto-server unschedule 127.0.0.1:3301 nightly")
@URI
@_NAME
@JSON
def unschedule(uri: str, name: str, as_json: bool) -> None:
    """Remove the schedule NAME. The tasks that it has put stay."""
    with connected(uri) as client:
        found = client.unschedule(name)
    if as_json:
        print_json(found)
        return
    from iproto_server.tools.operators.shown import printable

    click.echo(f'removed the schedule "{printable(name)}"')


@operator_command(
    short_help="Show the schedules.",
    epilog="""\
iproto-server schedules 127.0.0.1:3301
iproto-server schedules --json 127.0.0.1:3301 | jq 'select(.last_error) | .name'""",
)
@URI
@JSON
def schedules(uri: str, as_json: bool) -> None:
    """Show the schedules: queue, cron expression, next and last due time, last task, and last error.

    With --json, each schedule is one line.
    """
    with connected(uri) as client:
        found = client.schedules()
    if as_json:
        for each in found:
            print_json(each)
        return
    from iproto_server.tools.operators.tables import show_schedules

    if found:
        show_schedules(found)
    else:
        complain("there are no schedules")
