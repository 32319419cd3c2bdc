"""The common parts of the tools' command lines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from iproto_server.tools.client import ServerUri


Function = TypeVar("Function", bound=Callable[..., Any])


class Seconds(click.FloatRange):
    """A finite number of seconds within a range."""

    name = "number of seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; "nan" is within no range."""
        found = float(super().convert(value, param, ctx))
        if math.isnan(found):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return found


def _keep_timeout(context: click.Context, parameter: click.Parameter, seconds: float | None) -> None:
    context.meta[_TIMEOUT] = seconds


_TIMEOUT: Final = "iproto_server.timeout"


TIMEOUT: Final = click.option(
    "--timeout",
    metavar="SECONDS",
    type=Seconds(0.1, 86_400),
    callback=_keep_timeout,
    expose_value=False,
    help="Longest wait for the connection, and for each answer.  [default: 10, and 60]",
)


def with_timeout(uri: ServerUri) -> ServerUri:
    """Return a URI with the time limit of the running command."""
    return replace(uri, timeout=click.get_current_context().meta.get(_TIMEOUT))


class ExampleCommand(click.Command):
    """A command whose `--help` ends with examples: the lines of its epilog."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            for line in (self.epilog or "").splitlines():
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def read_moment(context: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    """Read seconds since 1970, or a date and time, as the callback of an option.

    Parameters:
        context, parameter: those of the option.
        text: its value.

    Returns:
        Seconds since 1970; None if the option is not given.

    Raises:
        click.BadParameter: the text is neither.
    """
    if text is None:
        return None
    try:
        if re.fullmatch(r"[0-9]+(\.[0-9]*)?", text):
            return float(text)
        moment = datetime.fromisoformat(text)
    except ValueError:
        expected = "seconds since 1970 nor a moment as in 2026-01-31T12:00:00Z"
        raise click.BadParameter(f'"{text}" is neither {expected}') from None
    if moment.tzinfo is None:
        raise click.BadParameter(f'"{text}" does not say of which time zone: add Z or an offset')
    return moment.timestamp()


# Not looked at beforehand, so that what cannot be read is told in the same words, whatever the reason.
PATH = click.Path(path_type=Path, readable=False)


def complain(text: str) -> None:
    """Print an error in one line on stderr.

    Parameters:
        text: the error.
    """
    click.echo(f"iproto-server: {' '.join(text.split())}", err=True)
