"""The form of the rows of system spaces, as Tarantool 2.6 checks it when it reads a snapshot."""

from __future__ import annotations

import json
import pkgutil
from functools import cache
from typing import Final

from iproto_server.box.memtx.row_applier import in_words
from iproto_server.box.tuple.format import Format
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError

_NAME, _FORMAT = 2, 6
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


@cache
def _formats() -> dict[str, Format]:
    """The formats of the system spaces by name."""
    text = pkgutil.get_data("iproto_server.box.catalog", "bootstrap.json")
    assert text is not None
    return {
        row[_NAME]: Format.parse(row[_FORMAT][: _EARLIER_LENGTHS.get(row[_NAME])], row[_NAME])
        for row in json.loads(text)["_space"]
    }
