"""The size in bytes of a packed tuple after its first fields: the size of a task's data."""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sql

_BYTE: Final = "cast(conv(hex(substring({packed}, {at}, {size})), 16, 10) as int)"

_SIZES: Final = """
    case
        when {first} < 0x80 or {first} >= 0xe0 or {first} in (0xc0, 0xc2, 0xc3) then 1
        when {first} between 0xa0 and 0xbf then {first} - 0x9f
        when {first} in (0xcc, 0xd0) then 2
        when {first} in (0xcd, 0xd1, 0xd4) then 3
        when {first} = 0xd5 then 4
        when {first} in (0xce, 0xd2, 0xca) then 5
        when {first} = 0xd6 then 6
        when {first} in (0xcf, 0xd3, 0xcb) then 9
        when {first} = 0xd7 then 10
        when {first} = 0xd8 then 18
        when {first} in (0xc4, 0xd9) then {one} + 2
        when {first} in (0xc5, 0xda) then {two} + 3
        when {first} in (0xc6, 0xdb) then {four} + 5
        when {first} = 0xc7 then {one} + 3
    end"""
"""The size of a scalar, by its first byte and the following number; null for arrays and maps."""


def size_behind(packed: str, fields: int) -> Column:
    """The size of a tuple after its first fields.

    Parameters:
        packed: The name of a binary column with the tuple as a MessagePack array.
        fields: The number of fields to skip: numbers, strings and other scalars.

    Returns:
        The number of bytes; null if one of these fields is an array or a map.
    """
    names = {"one": 1, "two": 2, "four": 4}
    size = _SIZES.format(
        first=_BYTE.format(packed=packed, at="at", size=1),
        **{name: _BYTE.format(packed=packed, at="at + 1", size=size) for name, size in names.items()},
    )
    head = _BYTE.format(packed=packed, at=1, size=1)
    begin = f"case {head} when 0xdc then 4 when 0xdd then 6 else 2 end"
    end = f"aggregate(sequence(1, {fields}), {begin}, (at, _) -> at + {size})"
    # SQL has no hexadecimal numbers.
    text = re.sub(
        "0x[0-9a-f]{2}", lambda found: str(int(found[0], 16)), f"octet_length({packed}) + 1 - {end}"
    )
    return sql.expr(f"cast({text} as bigint)")
