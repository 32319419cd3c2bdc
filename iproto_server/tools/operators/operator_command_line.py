"""The common parts of the commands for operators of a running server.

What a command needs is imported when it runs: serving must not wait for rich and textual.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from iproto_server.text.strict_json import parse_json
from iproto_server.tools.command_line import TIMEOUT, ExampleCommand, with_timeout

if TYPE_CHECKING:
    from iproto_server.tools.client import ServerUri
    from iproto_server.tools.operators.operator_client import OperatorClient

_USER, _PASSWORD = "TT_CLI_USERNAME", "TT_CLI_PASSWORD"
"""The variables of Tarantool's own command `tt connect`."""

URI: Final = click.argument("uri", metavar="URI")
JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")

_ABOUT_URI: Final = """

    URI is [USER[:PASSWORD]@]HOST:PORT or [USER[:PASSWORD]@]unix:PATH, with ?transport=ssl&ssl_ca_file=FILE
    behind it for TLS. The user and the password may be in TT_CLI_USERNAME and TT_CLI_PASSWORD; a missing
    password is asked for.
    """


_SHOWN: Final = 100
"""Maximum characters of an argument in a message."""
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]+")
"""A number with an exponent; digits alone may be an id with zeros in front."""


class Failure(Exception):
    """A command ends with exit status 1; the message is one line for the user."""


def complain(text: str) -> None:
    """Print a text on stderr, in one line."""
    click.echo(f"iproto-server: {' '.join(text.split())}", err=True)


def operator_command(**settings: Any) -> Callable[[Callable[..., int | None]], click.Command]:
    """Make a command whose failures are one line on stderr and exit status 1."""

    def make(function: Callable[..., int | None]) -> click.Command:
        @wraps(function)
        def run(**arguments: Any) -> int:
            from iproto_server.tools.client import ClientError
            from iproto_server.tools.operators.operator_client import CallError

            try:
                return function(**arguments) or 0
            except (Failure, ClientError, CallError) as error:
                complain(str(error))
                return 1
            except BrokenPipeError:
                # Whoever reads has seen enough. Python would complain when it flushes at its end.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 0

        run.__doc__ = (function.__doc__ or "") + _ABOUT_URI
        return click.command(cls=ExampleCommand, **settings)(TIMEOUT(run))

    return make


def server_uri(text: str) -> ServerUri:
    """Read a URI, and complete it with a user and a password of the environment or the terminal.

    Parameters:
        text: `[USER[:PASSWORD]@]ADDRESS[?PARAMETERS]`.

    Raises:
        click.BadParameter: it is none.
    """
    from iproto_server.tools.client import ServerUri

    try:
        uri = ServerUri.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="URI") from None
    if uri.user is None:
        uri = replace(uri, user=os.environ.get(_USER) or None)
    if uri.user is not None and uri.password is None:
        password = os.environ.get(_PASSWORD)
        if password is None and sys.stdin.isatty():
            password = click.prompt(f"Password of {uri.user}", hide_input=True, err=True, default="")
        uri = replace(uri, password=password)
    return with_timeout(uri)


@contextmanager
def connected(uri: str) -> Iterator[OperatorClient]:
    """A block with a connection to a server.

    Parameters:
        uri: the server.

    Raises:
        ClientError: there is no connection to be had.
        click.BadParameter: the URI is wrong.
    """
    from iproto_server.tools.operators.operator_client import OperatorClient

    with OperatorClient(server_uri(uri)) as client:
        yield client


def print_json(value: object) -> None:
    """Print a value as a line of JSON."""
    from iproto_server.tools.files.json_record import json_text

    click.echo(json_text(value))


def json_argument(text: str, what: str) -> object:
    """Return the value of a JSON text; what looks like none is itself.

    Parameters:
        text: the text.
        what: the argument's name in messages.

    Raises:
        click.BadParameter: it begins as a list, an object or a string of JSON, or is a number, and cannot be
            read.
    """
    try:
        return parse_json(text)
    except ValueError as error:
        if text.lstrip()[:1] not in ("{", "[", '"') and not _NUMBER.fullmatch(text):
            return text
        raise click.BadParameter(
            f"{shortened(text)} is no JSON: {error}; as a string, it is {shortened(json.dumps(text))}",
            param_hint=what,
        ) from None


def shortened(text: str) -> str:
    """Return a text of the user's for a message."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


QUEUE = click.argument("queue", metavar="QUEUE")


YES = click.option("--yes", "-y", is_flag=True, help="Do not ask before a change of more than one task.")


def ask(question: str, is_bulk: bool, yes: bool) -> None:
    """Ask before a change of more than one task."""
    if not is_bulk or yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("more than one task would be changed: give --yes")
    if not click.confirm(question, err=True):
        raise Failure("nothing was changed")
