"""How many bytes of a packed tuple are behind its first fields: the size of a task's data."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sql


def size_behind(packed: Column, fields: int) -> Column:
    """The size of what is behind the first fields of a tuple.

    Args:
        packed: The tuple as an array of MessagePack, binary.
        fields: How many fields are passed over. They are numbers, strings and other scalars.

    Returns:
        The number of bytes; null if one of these fields is an array or a map.
    """
    begin = sql.when(_byte(packed, sql.lit(1)) == 0xDC, 4).when(_byte(packed, sql.lit(1)) == 0xDD, 6)
    end = sql.aggregate(
        sql.sequence(sql.lit(1), sql.lit(fields)),
        begin.otherwise(2),
        lambda position, _: position + _size_at(packed, position),
    )
    return (sql.octet_length(packed) + 1 - end).cast("bigint")


def _size_at(packed: Column, position: Column) -> Column:
    """The size of the scalar at a position, counted from 1."""
    first = _byte(packed, position)
    after = position + 1
    size = sql.when((first < 0x80) | (first >= 0xE0), 1)
    size = size.when(first.between(0xA0, 0xBF), first - (0xA0 - 1))
    for sizes, codes in (
        (1, (0xC0, 0xC2, 0xC3)),
        (2, (0xCC, 0xD0)),
        (3, (0xCD, 0xD1, 0xD4)),
        (4, (0xD5,)),
        (5, (0xCE, 0xD2, 0xCA)),
        (6, (0xD6,)),
        (9, (0xCF, 0xD3, 0xCB)),
        (10, (0xD7,)),
        (18, (0xD8,)),
    ):
        size = size.when(first.isin(*codes), sizes)
    size = size.when(first.isin(0xC4, 0xD9), _number(packed, after, 1) + 2)
    size = size.when(first.isin(0xC5, 0xDA), _number(packed, after, 2) + 3)
    size = size.when(first.isin(0xC6, 0xDB), _number(packed, after, 4) + 5)
    return size.when(first == 0xC7, _number(packed, after, 1) + 3)


def _byte(packed: Column, position: Column) -> Column:
    return _number(packed, position, 1)


def _number(packed: Column, position: Column, size: int) -> Column:
    text = sql.hex(sql.substring(packed, position, sql.lit(size)))
    return sql.conv(text, 16, 10).cast("int")
