"""The option `schema_evolution`: a space's format that changes while a stream with fixed columns runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.options import SchemaEvolution
from pyspark_tarantool.source.schema.definitions import Definitions, SpaceDefinition
from pyspark_tarantool.source.stream.live_logs import START_OVER

FIELDS_KEY: Final = "fields"
"""The key, in offsets, of the fields of the query's first columns, for `schema_evolution=fail`."""


def fields_of(space: SpaceDefinition) -> list[list[str]]:
    """The names and types of a space's fields, for a checkpoint.

    Parameters:
        space: The space.
    """
    return [[field.name, field.type.value] for field in space.fields]


def check_format(
    evolution: SchemaEvolution, definitions: Definitions, columns: SpaceDefinition, end: Mapping[str, Any]
) -> None:
    """Check the format of a space at the end of a batch.

    Parameters:
        evolution: The option.
        definitions: The spaces at the end of the batch.
        columns: The space that the query's columns were made for.
        end: The batch's end offset.

    Raises:
        SourceError: If the space has fields without a column that are not to become extra fields.
    """
    if evolution is SchemaEvolution.EXTRA:
        return
    known = fields_of(columns)
    if evolution is SchemaEvolution.FAIL:
        known = [list(field) for field in end.get(FIELDS_KEY, known)]
    for space in definitions.values():
        if space.name != columns.name and space.id != columns.id:
            continue
        new = [field for field in fields_of(space) if field not in known]
        if new:
            names = ", ".join(f"'{name}' ({kind})" for name, kind in new)
            raise SourceError(f"space '{space.name}' has new fields {names}: {_ADVICE[evolution]}")


_ADVICE: Final = {
    SchemaEvolution.RESTART: "start the query again, and it has columns for them",
    SchemaEvolution.FAIL: "schema_evolution=restart gives the query columns for them when it is started "
    f"again, and schema_evolution=extra puts them into _extra; {START_OVER}",
}
