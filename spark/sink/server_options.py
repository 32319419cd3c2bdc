"""The options of `df.write.format("tarantool")` with a `url`, checked before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self

from iproto_server.tools.client import ServerUri
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.remote.option_values import (
    RETRIES,
    TIMEOUT,
    parse_count,
    parse_seconds,
    parse_url,
)

IN_FLIGHT: Final = 256
BATCHES_SPACE: Final = "spark_batches"

_SPARKS_OWN: Final = frozenset({"checkpointlocation", "path"})
"""Spark also passes its own options to the writers of streams."""


class Operation(StrEnum):
    """The operation on a space."""

    REPLACE = "replace"
    INSERT = "insert"
    UPSERT = "upsert"
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
        query: With `batch`: the query whose batch is written.
        batch: The number of the batch, which is written in one transaction unless the server has it already;
            None to write rows without a transaction.
        batches_space: The space of batch numbers.
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
    query: str = ""
    batch: int | None = None
    batches_space: str = BATCHES_SPACE

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
        batch, query = options.pop("batch", None), options.pop("query", "")
        if (batch is None) != (query == ""):
            raise SourceError('the options "query" and "batch" are given together')
        parsed = cls(
            uri=parse_url(options.pop("url", "")),
            procedure=procedure,
            space=int(space) if space is not None and space.isdecimal() else space,
            operation=_operation(options.pop("operation", Operation.REPLACE)),
            json_columns=tuple(filter(None, map(str.strip, options.pop("json_columns", "").split(",")))),
            in_flight=parse_count(options.pop("in_flight", str(IN_FLIGHT)), "in_flight", 1),
            timeout=parse_seconds(options.pop("timeout", str(TIMEOUT))),
            retries=parse_count(options.pop("retries", str(RETRIES)), "retries", 0),
            query=query,
            batch=None if batch is None else parse_count(batch, "batch", 0),
            batches_space=options.pop("batches_space", BATCHES_SPACE),
        )
        if options:
            names = ", ".join(f'"{name}"' for name in sorted(options))
            raise SourceError(f"there is no option {names} for writing to a server")
        return parsed


def _refuse(options: Mapping[str, str], name: str, other: str) -> None:
    if name in options:
        raise SourceError(f'the option "{name}" requires the option "{other}"')


def _operation(text: str) -> Operation:
    try:
        return Operation(text.lower())
    except ValueError:
        known = ", ".join(Operation)
        raise SourceError(f'the option "operation" is one of {known}, not "{text}"') from None
