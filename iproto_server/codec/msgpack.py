"""MessagePack as Tarantool uses it: all that packs, unpacks, or cuts packed values.

Texts are MP_STR and may hold any bytes: those that are not UTF-8 become lone surrogates, which pack to the
same bytes. `bytes` are MP_BIN. Tarantool's extension types are Python's values where Python has them.

The compiled module does the work. For extension types it calls `decode` and `encode` of
`iproto_server/codec/extensions.py`.
"""

from msgpack import ExtType

from iproto_server.codec.extensions import Datetime, ExtensionType, Interval, IntervalAdjust
from iproto_server.codec.kinds import Kind, kind
from iproto_server.native._native import (
    Raw,
    array_count,
    array_header,
    first_items,
    is_valid,
    map_count,
    map_header,
    pack,
    skip,
    split_array,
    split_map,
    unpack,
)

__all__ = [
    "Datetime",
    "ExtType",
    "ExtensionType",
    "Interval",
    "IntervalAdjust",
    "Kind",
    "Raw",
    "array_count",
    "array_header",
    "first_items",
    "is_valid",
    "kind",
    "map_count",
    "map_header",
    "pack",
    "skip",
    "split_array",
    "split_map",
    "unpack",
]
