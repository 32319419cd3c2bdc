"""Rows as JSON, one object in one line."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from json.encoder import encode_basestring
from uuid import UUID

from iproto_server.codec import msgpack as codec
from iproto_server.storage.xlog import Row
from iproto_server.tools.files.record import body_fields, header_fields
from iproto_server.tools.files.values import as_integer, extension_text, shown_decimal, shown_double

_ESCAPED = re.compile("[/\x7f\ud800-\udfff]")
_ESCAPES = {ord("/"): "\\/", **{code: f"\\u{code:04x}" for code in (0x7F, *range(0xD800, 0xE000))}}


def format_json(row: Row) -> str:
    """Show a row, with the end of its line.

    What Tarantool prints is no JSON at times. Here bytes that are no UTF-8 are shown as the surrogates that
    Python's `surrogateescape` makes of them, `\\udc80` to `\\udcff`; infinite numbers and any keys, as
    strings.
    """
    header = ",".join(f'"{key}":{json_text(value)}' for key, value in header_fields(row))
    body = body_fields(row)
    if not body:
        return f'{{"HEADER":{{{header}}}}}\n'
    return f'{{"HEADER":{{{header}}},"BODY":{json_text(dict(body))}}}\n'


def _string(text: str) -> str:
    encoded = encode_basestring(text)
    return encoded.translate(_ESCAPES) if _ESCAPED.search(encoded) else encoded


def json_text(value: object) -> str:
    """Show a value; see `format_json`."""
    if isinstance(value, str):
        return _string(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return f"[{','.join(map(json_text, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join([f'{_key(key)}:{json_text(item)}' for key, item in value.items()])}}}"
    if isinstance(value, float):
        integer = as_integer(value)
        if integer is not None:
            return str(integer)
        return shown_double(value) if math.isfinite(value) else f'"{shown_double(value)}"'
    if isinstance(value, bytes):
        return _string(value.decode("utf-8", "surrogateescape"))
    if isinstance(value, Decimal):
        return f'"{shown_decimal(value)}"'
    if isinstance(value, UUID):
        return f'"{value}"'
    if isinstance(value, tuple) and not isinstance(value, codec.ExtType):
        return json_text(list(value))
    return _string(extension_text(value))


def _key(key: object) -> str:
    shown = json_text(key)
    return shown if shown.startswith('"') else _string(shown)
