"""The form of the rows of system spaces, as Tarantool 2.6 checks it when it reads a snapshot."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from iproto_server.box.memtx.row_applier import in_words
from iproto_server.box.tuple.format import Format
from iproto_server.box.types.field_type import FieldType
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError

_NAME, _FORMAT = 2, 6
_EMPTY: Final[dict[FieldType, Any]] = {
    FieldType.ARRAY: [],
    FieldType.MAP: {},
    FieldType.UNSIGNED: 0,
    FieldType.INTEGER: 0,
    FieldType.STRING: "",
    FieldType.BOOLEAN: False,
}
_EARLIER_LENGTHS: Final = {"_func": 4, "_space_sequence": 3}
"""The number of fields in the first version that 2.6 reads, where later ones have added some."""


def reason_of(error: BaseException, space: str, raw: bytes) -> str:
    """Say what is wrong with a row of a system space.

    Parameters:
        error: what reading the row has raised.
        space: the name of its space.
        raw: the packed row.

    Returns: the message of the error; for a row that does not have the form of its space, what Tarantool 2.6
        would say.
    """
    if not isinstance(error, BoxError):
        form = _formats().get(space)
        if form is not None:
            try:
                form.check(codec.unpack(raw))
            except BoxError as unfit:
                return unfit.message
    return in_words(error)


def with_later_fields(row: Sequence[Any], space_format: Format) -> list[Any]:
    """Add the fields that a later version of Tarantool requires in the rows of a system space, without value.

    Parameters:
        row: the row that 2.6 would write.
        space_format: the format of the space.
    """
    later = space_format.fields[len(row) : space_format.min_field_count]
    return [*row, *(_EMPTY.get(each.type) for each in later)]


@cache
def _formats() -> dict[str, Format]:
    """The formats of the system spaces by name."""
    text = pkgutil.get_data("iproto_server.box.catalog", "bootstrap.json")
    assert text is not None
    return {
        row[_NAME]: Format.parse(row[_FORMAT][: _EARLIER_LENGTHS.get(row[_NAME])], row[_NAME])
        for row in json.loads(text)["_space"]
    }
