"""The options of tables in Spark's catalog: `CREATE TABLE t USING tarantool OPTIONS (…)`.

Spark asks for the columns of a new table with its options and some properties of its own. Later, when the
table is read or written, it passes the columns only. So the options are stored in the metadata of the first
column. They contain no password, which would be visible in the catalog: it comes from a file or from the
environment whenever it is needed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql.types import StructField, StructType

from pyspark_tarantool.source.errors import SourceError

PASSWORD: Final = "TARANTOOL_PASSWORD"
"""The environment variable with the password of the user that a URL names."""

_KEY: Final = "tarantool"
_DEFINING: Final = "provider"
"""The property that Spark sets for new tables alone."""
_PROPERTIES: Final = frozenset(
    {"collation", "comment", "external", "is_managed_location", "location", "owner", "provider"}
)
_COPY: Final = "option."
"""Spark passes each option twice: by its name, and with this prefix."""
_PLACES: Final = frozenset({"path", "paths", "url"})


def is_new_table(given: Mapping[str, str]) -> bool:
    """Whether Spark asks for the columns of a new table.

    Parameters:
        given: Options from Spark.
    """
    return _DEFINING in given


def options_of_new_table(given: Mapping[str, str]) -> dict[str, str]:
    """The options of a new table, without Spark's own properties.

    Parameters:
        given: Options from Spark.

    Raises:
        SourceError: If they contain a password.
    """
    copies = {name.removeprefix(_COPY).lower() for name in given if name.lower().startswith(_COPY)}
    options = {name.lower(): text for name, text in given.items()}
    kept = {
        name: text
        for name, text in options.items()
        if (name in copies or name not in _PROPERTIES) and not name.startswith(_COPY)
    }
    credentials, at, _ = kept.get("url", "").rpartition("@")
    if "password" in kept or (at and ":" in credentials):
        raise SourceError(
            "a table stores its options, so it must not contain a password: "
            f'use the option "password_file", or the environment variable {PASSWORD}'
        )
    return kept


def remember(columns: StructType, options: Mapping[str, str]) -> StructType:
    """Store options in the metadata of the first column.

    Parameters:
        columns: The columns.
        options: The options of the table.

    Returns:
        The same columns, with metadata.
    """
    first, *others = columns.fields
    metadata = {**(first.metadata or {}), _KEY: json.dumps(dict(options), sort_keys=True)}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def recall(given: Mapping[str, str], columns: StructType, *, writing: bool = False) -> dict[str, str]:
    """The options of a query: those given, else those of the table that the columns belong to.

    A DataFrame keeps the metadata of a table that it was read from. So options are only taken from there if
    the given ones name neither a path nor a server.

    Parameters:
        given: Options from Spark; `SELECT … FROM t WITH (…)` adds to those of a table.
        columns: The columns.
        writing: Whether rows are written: then, any given option excludes those of a table.

    Raises:
        SourceError: If there are none, as for a table with a list of columns.
    """
    options = {name.lower(): text for name, text in given.items()}
    if options.keys() & _PLACES or (writing and options) or not columns.fields:
        return options
    stored = (columns.fields[0].metadata or {}).get(_KEY)
    if stored is None and not options:
        raise SourceError(
            "there are no options: pass a path to load(PATH), or create the table without a list of columns, "
            "so that OPTIONS (…) is stored with the columns of the space"
        )
    return options if stored is None else {**json.loads(stored), **options}


def with_password(options: Mapping[str, str]) -> dict[str, str]:
    """Complete the URL of a server by the password of its user.

    Parameters:
        options: The options; `password_file` names a file with the password and nothing else.

    Returns:
        The options without `password_file`.

    Raises:
        SourceError: If the file cannot be read, or is not needed.
    """
    completed = {name: text for name, text in options.items() if name != "password_file"}
    file, url = options.get("password_file"), options.get("url", "")
    user, at, address = url.rpartition("@")
    if file is not None and (not at or ":" in user):
        reason = "names no user" if not at else "has a password already"
        raise SourceError(
            f'the option "password_file" is for a user in "url": USER@HOST:PORT; the URL {reason}'
        )
    if not at or ":" in user:
        return completed
    password = os.environ.get(PASSWORD)
    if file is not None:
        try:
            password = Path(file.removeprefix("file:")).read_text(encoding="utf-8").removesuffix("\n")
        except (OSError, UnicodeError) as error:
            raise SourceError(f'the option "password_file": {file}: {error}') from None
    if password is not None:
        completed["url"] = f"{user}:{password}@{address}"
    return completed
