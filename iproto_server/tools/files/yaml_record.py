"""Rows as YAML documents, laid out by the library that Tarantool uses, too."""

from __future__ import annotations

import base64
import io
import math
import re
from decimal import Decimal
from uuid import UUID

import yaml

from iproto_server.codec import msgpack as codec
from iproto_server.storage.xlog import Row
from iproto_server.tools.files.record import body_fields, header_fields
from iproto_server.tools.files.values import as_integer, extension_text, shown_decimal, shown_double

# Without the C library, layout is Python's: the same but for the escapes of some characters.
_Emitter = getattr(yaml, "CDumper", yaml.Dumper)

_BINARY = "tag:yaml.org,2002:binary"

#: What is no UTF-8, and what YAML would not give back.
_UNPRINTABLE = re.compile("[\x80-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")

_Events = list[yaml.Event]

_STREAM_START = yaml.StreamStartEvent(encoding=None)
_STREAM_END = yaml.StreamEndEvent()
_DOCUMENT_START = yaml.DocumentStartEvent(explicit=True)
_DOCUMENT_END = yaml.DocumentEndEvent(explicit=False)
_BLOCK_START = yaml.MappingStartEvent(None, None, True, flow_style=False)
_FLOW_START = yaml.MappingStartEvent(None, None, True, flow_style=True)
_MAPPING_END = yaml.MappingEndEvent()
_SEQUENCE_START = yaml.SequenceStartEvent(None, None, True, flow_style=True)
_SEQUENCE_END = yaml.SequenceEndEvent()


def format_yaml(row: Row) -> str:
    """Show a row as one document.

    Infinite numbers are written as YAML wants them, where Tarantool's are strings for every other reader.
    """
    events: _Events = [_STREAM_START, _DOCUMENT_START, _BLOCK_START, _plain("HEADER"), _BLOCK_START]
    for name, field in header_fields(row):
        events.append(_plain(name))
        _append(events, field, in_flow=False)
    events.append(_MAPPING_END)
    body = body_fields(row)
    if body:
        events += (_plain("BODY"), _BLOCK_START)
        for key, value in body:
            events.append(_plain(str(key)))
            _append(events, value, in_flow=False)
        events.append(_MAPPING_END)
    events += (_MAPPING_END, _DOCUMENT_END, _STREAM_END)
    stream = io.StringIO()
    emitter = _Emitter(stream, allow_unicode=True)
    try:
        for event in events:
            emitter.emit(event)
    finally:
        emitter.dispose()
    return stream.getvalue()


def _plain(text: str) -> yaml.Event:
    return yaml.ScalarEvent(None, None, (True, True), text)


def _append(events: _Events, value: object, *, in_flow: bool = True) -> None:
    """Append what shows a value."""
    if isinstance(value, str):
        events.append(_string(value, in_flow=in_flow))
    elif isinstance(value, list | tuple) and not isinstance(value, codec.ExtType):
        events.append(_SEQUENCE_START)
        for item in value:
            _append(events, item)
        events.append(_SEQUENCE_END)
    elif isinstance(value, dict):
        events.append(_FLOW_START)
        for key, item in value.items():
            _append(events, key)
            _append(events, item)
        events.append(_MAPPING_END)
    elif isinstance(value, bytes):
        # Tarantool, too, shows bytes that are a text as one.
        events.append(_string(value.decode("utf-8", "surrogateescape"), in_flow=in_flow))
    elif value is None or isinstance(value, bool | int | float | Decimal | UUID):
        events.append(_plain(_word(value)))
    else:
        events.append(_string(extension_text(value), in_flow=in_flow))


def _string(text: str, *, in_flow: bool) -> yaml.Event:
    if _UNPRINTABLE.search(text):
        data = base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()
        return yaml.ScalarEvent(None, _BINARY, (False, False), data)
    return yaml.ScalarEvent(None, None, (True, True), text, style="'" if in_flow else None)


def _word(value: float | Decimal | UUID | None) -> str:
    """The text for a value in plain letters."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return shown_decimal(value)
    if isinstance(value, float):
        integer = as_integer(value)
        if integer is not None:
            return str(integer)
        return shown_double(value) if math.isfinite(value) else _not_finite(value)
    return str(value)


def _not_finite(value: float) -> str:
    return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
