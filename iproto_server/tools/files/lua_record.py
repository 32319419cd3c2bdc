"""Rows as Lua statements, each of which makes the change again when a Tarantool runs it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from uuid import UUID

from iproto_server.codec import msgpack as codec
from iproto_server.storage.xlog import Row, RowType
from iproto_server.tools.files.operations import rebase
from iproto_server.tools.files.values import extension_text, shown_decimal

_NAMES: dict[int, str] = {
    RowType.INSERT: "insert",
    RowType.REPLACE: "replace",
    RowType.UPDATE: "update",
    RowType.DELETE: "delete",
    RowType.UPSERT: "upsert",
}

#: From here on a Lua number would not show all digits.
_LONG = 10**14


def format_lua(row: Row) -> str:
    """Show a row, with the end of its line; nothing for a row that changes no tuple.

    Some of what Tarantool prints cannot be run, or does something else. This can: `box.NULL`,
    decimals, UUIDs, infinite numbers, and the field numbers in updates of clients that count from 0.
    """
    name = _NAMES.get(row.type)
    if name is None or row.space_id is None:
        return ""
    operations = None
    if row.operations_raw is not None:
        # Lua counts fields from 1; clients of other languages count from 0.
        rebased = rebase(row.operations_raw, row.index_base, 1)
        operations = _table([[codec.unpack(item.raw) for item in operation] for operation in rebased])
    arguments = (
        None if row.key_raw is None else _value(codec.unpack(row.key_raw)),
        None if row.tuple_raw is None else _value(codec.unpack(row.tuple_raw)),
        operations,
    )
    shown = ", ".join(argument for argument in arguments if argument is not None)
    return f"box.space[{row.space_id}]:{name}({shown})\n"


def _table(items: Sequence[object]) -> str:
    return f"{{{', '.join([f'[{place}] = {_value(item)}' for place, item in enumerate(items, 1)])}}}"


def _string(data: bytes) -> str:
    return "'\\x" + data.hex(" ").replace(" ", "\\x") + "'" if data else "''"


def _value(value: object) -> str:
    if isinstance(value, str):
        return _string(value.encode("utf-8", "surrogateescape"))
    if value is None:
        return "box.NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, list | tuple) and not isinstance(value, codec.ExtType):
        return _table(value)
    if isinstance(value, dict):
        return f"{{{', '.join([f'[{_value(key)}] = {_value(item)}' for key, item in value.items()])}}}"
    if isinstance(value, float):
        return _double(value)
    if isinstance(value, bytes):
        return _string(value)
    if isinstance(value, Decimal):
        return f"require('decimal').new('{shown_decimal(value)}')"
    if isinstance(value, UUID):
        return f"require('uuid').fromstr('{value}')"
    return _string(extension_text(value).encode("utf-8", "surrogateescape"))


def _integer(value: int) -> str:
    if -_LONG < value < _LONG:
        return str(value)
    return f"{value}LL" if value < 0 else f"{value}ULL"


def _double(value: float) -> str:
    if math.isnan(value):
        return "0/0"
    if math.isinf(value):
        return "math.huge" if value > 0 else "-math.huge"
    return f"{value:.14g}"
