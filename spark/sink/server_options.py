"""The options of `df.write.format("tarantool")` with a `url`, checked before anything is sent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self

from iproto_server.tools.client import ServerUri
from pyspark_tarantool.source.errors import SourceError

IN_FLIGHT: Final = 256
TIMEOUT: Final = 60.0
RETRIES: Final = 3

_SPARKS_OWN: Final = frozenset({"checkpointlocation", "path"})
"""Spark also passes its own options to the writers of streams."""


class Operation(StrEnum):
    """The operation on a space."""

    REPLACE = "replace"
    INSERT = "insert"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The destination of rows, and the kind of requests.

    Attributes:
        uri: The server, with user and password.
        procedure: The procedure to call with each row; None to change a space.
        space: The space, by name or id; None to call a procedure.
        operation: The operation on the space.
        json_columns: Columns with JSON texts, for calls.
        in_flight: The maximum number of unanswered requests of a task.
        timeout: Seconds without data from the server while requests are unanswered.
        retries: The number of consecutive failed connections without an answer.
    """

    # Hidden from `repr`, because it contains the password.
    uri: ServerUri = field(repr=False)
    procedure: str | None = None
    space: str | int | None = None
    operation: Operation = Operation.REPLACE
    json_columns: tuple[str, ...] = ()
    in_flight: int = IN_FLIGHT
    timeout: float = TIMEOUT
    retries: int = RETRIES

    @classmethod
    def parse(cls, given: Mapping[str, str], *, streaming: bool = False) -> Self:
        """Parse the options.

        Parameters:
            given: Names in any case, and values as text, from Spark.
            streaming: Whether a stream is written.

        Raises:
            SourceError: If one is missing, unknown or wrong; the message names it.
        """
        options = {name.lower(): text for name, text in given.items()}
        if streaming:
            options = {name: text for name, text in options.items() if name not in _SPARKS_OWN}
        procedure, space = options.pop("procedure", None), options.pop("space", None)
        if (procedure is None) == (space is None):
            wanted = "one of them is required" if space is None else "only one is allowed"
            raise SourceError(f'the options "procedure" and "space": {wanted}')
        if procedure is None:
            _refuse(options, "json_columns", "procedure")
        else:
            _refuse(options, "operation", "space")
        parsed = cls(
            uri=_uri(options.pop("url", "")),
            procedure=procedure,
            space=int(space) if space is not None and space.isdecimal() else space,
            operation=_operation(options.pop("operation", Operation.REPLACE)),
            json_columns=tuple(filter(None, map(str.strip, options.pop("json_columns", "").split(",")))),
            in_flight=_count(options.pop("in_flight", str(IN_FLIGHT)), "in_flight", 1),
            timeout=_seconds(options.pop("timeout", str(TIMEOUT))),
            retries=_count(options.pop("retries", str(RETRIES)), "retries", 0),
        )
        if options:
            names = ", ".join(f'"{name}"' for name in sorted(options))
            raise SourceError(f"there is no option {names} for writing to a server")
        return parsed


def _refuse(options: Mapping[str, str], name: str, other: str) -> None:
    if name in options:
        raise SourceError(f'the option "{name}" requires the option "{other}"')


def _uri(text: str) -> ServerUri:
    if not text:
        raise SourceError('the option "url" is missing: [USER:PASSWORD@]HOST:PORT or unix:PATH')
    # A path needs no prefix.
    credentials, at, address = text.rpartition("@")
    if address.startswith(("/", "./")):
        text = f"{credentials}{at}unix:{address}"
    try:
        uri = ServerUri.parse(text)
    except ValueError as error:
        raise SourceError(f'the option "url": {error}') from None
    if uri.tls:
        raise SourceError('the option "url": the sink connects without TLS')
    return uri


def _operation(text: str) -> Operation:
    try:
        return Operation(text.lower())
    except ValueError:
        known = ", ".join(Operation)
        raise SourceError(f'the option "operation" is one of {known}, not "{text}"') from None


def _count(text: str, name: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise SourceError(f'the option "{name}" is a whole number from {least} on, not "{text}"')
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise SourceError(f'the option "timeout" is a number of seconds above 0, not "{text}"')
    return seconds
