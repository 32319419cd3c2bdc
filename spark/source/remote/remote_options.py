"""The options of `spark.read.format("tarantool")` with a `url`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from iproto_server.tools.client import ServerUri
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.options import Mode, ReadOptions
from pyspark_tarantool.source.remote.option_values import (
    RETRIES,
    TIMEOUT,
    parse_count,
    parse_seconds,
    parse_url,
)

PARTITIONS: Final = 8
PAGE_ROWS: Final = 1000

_OF_FILES: Final = (
    "mode",
    "path",
    "paths",
    "wal_dir",
    "lsn",
    "time",
    "damaged",
    "bad_records_path",
    "tuples",
)
"""Options that only the files of a server have."""

_OF_WRITERS: Final = ("operation", "in_flight")
"""Options of a table into which rows may be inserted."""

_HOSTS, _USER, _PASSWORD, _SPACE = (
    "tarantool.hosts",
    "tarantool.username",
    "tarantool.password",
    "tarantool.space",
)
"""The option names of the connector cartridge-spark."""


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """A query of a running server's space.

    Attributes:
        uri: The server, with user and password.
        columns: The space, and the options of columns.
        partitions: The number of ranges of the primary key that tasks read.
        page_rows: The maximum number of rows of a response.
        consistent: Whether to read all rows in one transaction, in one task.
        timeout: Seconds without data from the server while a request is unanswered.
        retries: The number of consecutive failed connections without an answer.
    """

    # Hidden from `repr`, because it contains the password.
    uri: ServerUri = field(repr=False)
    columns: ReadOptions
    partitions: int = PARTITIONS
    page_rows: int = PAGE_ROWS
    consistent: bool = False
    timeout: float = TIMEOUT
    retries: int = RETRIES

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self:
        """Parse the options of a query.

        Parameters:
            given: Names in any case, and values as text, from Spark.

        Raises:
            SourceError: If one is missing, unknown or wrong; the message names it, without a password.
        """
        options = {name.lower(): text for name, text in given.items()}
        for name in _OF_WRITERS:
            options.pop(name, None)
        for name in _OF_FILES:
            if name in options:
                raise SourceError(f'the option "{name}" is for files, not for a server')
        if _SPACE in options:
            _put(options, "space", options.pop(_SPACE), _SPACE)
        uri = parse_url(_url(options))
        partitions = parse_count(options.pop("partitions", str(PARTITIONS)), "partitions", 1)
        page_rows = parse_count(options.pop("page_rows", str(PAGE_ROWS)), "page_rows", 1)
        timeout = parse_seconds(options.pop("timeout", str(TIMEOUT)))
        retries = parse_count(options.pop("retries", str(RETRIES)), "retries", 0)
        consistent = options.pop("consistent", "false").lower()
        if consistent not in ("true", "false"):
            raise SourceError(f'the option "consistent" is {consistent!r}, not true or false')
        options |= {"path": str(uri.address), "mode": Mode.SNAPSHOT}
        columns = ReadOptions.parse(options)
        return cls(uri, columns, partitions, page_rows, consistent == "true", timeout, retries)


def is_remote(given: Mapping[str, str]) -> bool:
    """Whether options name a server.

    Parameters:
        given: The options of a query; names in any case.
    """
    return any(name.lower() in ("url", _HOSTS) for name in given)


def _url(options: dict[str, str]) -> str:
    """The server's address with user and password; the options for them are removed."""
    url, hosts = options.pop("url", None), options.pop(_HOSTS, None)
    user, password = options.pop(_USER, None), options.pop(_PASSWORD, None)
    if hosts is not None:
        if url is not None:
            raise SourceError(f'the options "url" and "{_HOSTS}": only one is allowed')
        # Its routers are all the same: one of them is enough.
        url = hosts.partition(",")[0].strip()
    if password is not None and user is None:
        raise SourceError(f'the option "{_PASSWORD}" requires the option "{_USER}"')
    if user is not None:
        if "@" in (url or ""):
            raise SourceError(f'the option "{_USER}" contradicts the user of the URL')
        url = f"{user}:{password or ''}@{url}"
    return url or ""


def _put(options: dict[str, str], name: str, text: str, alias: str) -> None:
    if options.setdefault(name, text) != text:
        raise SourceError(f'the option "{alias}" contradicts the option "{name}"')
