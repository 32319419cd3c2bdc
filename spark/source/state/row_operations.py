"""Operations of logged UPDATEs and UPSERTs, applied to the rows of a space."""

from __future__ import annotations

from functools import cached_property

from iproto_server.box.tuple.field_rules import places_of
from iproto_server.box.types.field_type import FieldType
from iproto_server.box.update import apply_update, apply_upsert, parse_update
from iproto_server.codec import msgpack as codec
from pyspark_tarantool.source.decode.packed_keys import PackedKeys
from pyspark_tarantool.source.schema.definitions import SpaceDefinition
from pyspark_tarantool.source.state.key_states import LoggedOperations


class RowOperations:
    """Applies operations to rows.

    Parameters:
        space: The space.
        keys: Its keys.
    """

    def __init__(self, space: SpaceDefinition, keys: PackedKeys) -> None:
        self._names = space.format.names
        self._doubles = frozenset(places_of(FieldType.DOUBLE, enumerate(space.format.rules)))
        self._keys = keys

    @cached_property
    def packed_doubles(self) -> tuple[int, bool]:
        """The fields of type `double` for compiled code: a bit for each of the first 64, and if others."""
        first, has_more = 0, False
        for place in self._doubles:
            if len(place) == 1 and isinstance(place[0], int) and place[0] < 64:
                first |= 1 << place[0]
            else:
                has_more = True
        return first, has_more

    def apply(self, raw: bytes | None, logged: LoggedOperations) -> bytes | None:
        """Apply one change.

        Parameters:
            raw: The row; None if there is none.
            logged: The change.

        Returns:
            The row after it; None if there is none.
        """
        _, _, tuple_raw, operations_raw, index_base = logged
        operations = parse_update(operations_raw, self._names, index_base)
        if tuple_raw is None:
            return raw if raw is None else apply_update(operations, raw, self._doubles)
        if raw is None:
            return tuple_raw
        changed = apply_upsert(operations, raw, self._doubles)
        # An UPSERT that would change the key does nothing.
        return changed if self._keys.of_row(changed) == self._keys.of_row(raw) else raw


def has_names(operations_raw: bytes) -> bool:
    """Return whether packed operations name fields instead of numbering them."""
    return any(isinstance(operation[1], str) for operation in codec.unpack(operations_raw))
