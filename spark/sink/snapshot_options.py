"""The options of `df.write.format("tarantool")` with a `path`, checked before anything is written."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from iproto_server.box.types.field_type import FieldType
from pyspark_tarantool.source.errors import SourceError

SPACE_ID: Final = 512
"""The first id of user spaces."""

_INDEX: Final = "index."
_NOT_UNIQUE: Final = " nonunique"
_ITS_OWN: Final = ("space_id", "primary_key", "types")


class SecondaryIndex(NamedTuple):
    """A secondary index.

    Attributes:
        name: Its name.
        columns: The columns it is ordered by.
        is_unique: Whether it is unique.
    """

    name: str
    columns: tuple[str, ...]
    is_unique: bool


@dataclass(frozen=True, slots=True)
class SnapshotOptions:
    """The directory of a snapshot, and the definition of its space.

    Attributes:
        path: The directory, on any filesystem.
        space: The space's name; with a template, also its id.
        template: A directory or a snapshot of a database with the space; None for a new database.
        space_id: The new space's id.
        primary_key: The columns of the new space's primary key; empty for the first column.
        indexes: The new space's other indexes.
        types: Types of fields that differ from those of their columns.
    """

    path: str
    space: str
    template: str | None = None
    space_id: int = SPACE_ID
    primary_key: tuple[str, ...] = ()
    indexes: tuple[SecondaryIndex, ...] = ()
    types: Mapping[str, FieldType] = field(default_factory=dict)

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self:
        """Parse the options.

        Parameters:
            given: Names in any case, and values as text, from Spark.

        Raises:
            SourceError: If one is missing, unknown or wrong; the message names it.
        """
        options = {name.lower(): text for name, text in given.items()}
        for name, what in (("path", "the directory of the snapshot"), ("space", "the space's name")):
            if not options.get(name):
                other = ', or "url" to write to a server' if name == "path" else ""
                raise SourceError(f'the option "{name}" is missing: {what}{other}')
        if "template" in options:
            own = sorted(name for name in options if name in _ITS_OWN or name.startswith(_INDEX))
            if own:
                raise SourceError(
                    f'the option "{own[0]}" is for new databases: the template defines the space'
                )
        indexes = tuple(
            _index(name.removeprefix(_INDEX), options.pop(name))
            for name in sorted(options)
            if name.startswith(_INDEX)
        )
        parsed = cls(
            path=_absolute(options.pop("path")),
            space=options.pop("space"),
            template=options.pop("template", None),
            space_id=_number(options.pop("space_id", str(SPACE_ID))),
            primary_key=_columns(options.pop("primary_key", ""), "primary_key"),
            indexes=indexes,
            types=_types(options.pop("types", "")),
        )
        if options:
            names = ", ".join(f'"{name}"' for name in sorted(options))
            raise SourceError(f"there is no option {names} for writing a snapshot")
        return parsed


def _absolute(path: str) -> str:
    """An absolute path or URI, valid in every process of this machine."""
    path = path.removeprefix("file://") if path.startswith("file:///") else path
    return path if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path) else os.path.abspath(path)


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < SPACE_ID:
        raise SourceError(f'the option "space_id" must be a number of at least {SPACE_ID}, not "{text}"')
    return int(text)


def _columns(text: str, option: str) -> tuple[str, ...]:
    columns = tuple(column.strip() for column in text.split(",")) if text.strip() else ()
    if not all(columns):
        raise SourceError(f'the option "{option}" must be column names between commas, not "{text}"')
    return columns


def _index(name: str, text: str) -> SecondaryIndex:
    is_unique = not text.rstrip().lower().endswith(_NOT_UNIQUE)
    columns = _columns(text if is_unique else text.rstrip()[: -len(_NOT_UNIQUE)], f"{_INDEX}{name}")
    if not name or not columns:
        raise SourceError(
            f'the option "{_INDEX}{name}" needs a name and columns: index.NAME = "a,b nonunique"'
        )
    return SecondaryIndex(name, columns, is_unique)


def _types(text: str) -> dict[str, FieldType]:
    types: dict[str, FieldType] = {}
    for each in filter(None, map(str.strip, text.split(","))):
        column, _, name = each.rpartition(" ")
        found = FieldType.by_name(name)
        if not column or found is None:
            known = ", ".join(FieldType)
            raise SourceError(
                f'the option "types": "{each}" is not a column and a type: the types are {known}'
            )
        types[column.strip()] = found
    return types
