"""Auto-increment: the next value of a sequence replaces nil in one field of a new row.

Source: Tarantool reference, "Specifying a sequence in create_index()".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from iproto_server.box.access.access_control import Credentials
from iproto_server.box.index.index import Index
from iproto_server.box.memtx.sequence import INT64_MAX, SequenceState
from iproto_server.box.tuple.tuple import Tuple
from iproto_server.box.types.field_type import FieldType
from iproto_server.box.types.json_path import TokenKind, parse_json_path
from iproto_server.box.update import apply_update, operations_from_python
from iproto_server.codec import msgpack as codec
from iproto_server.codec.msgpack import skip
from iproto_server.errors import BoxError, ErrorCode

_HEADER_SIZES: Final = {0xDC: 3, 0xDD: 5}
_MISSING: Final = object()
_INTEGERS: Final = (FieldType.UNSIGNED, FieldType.INTEGER)


class AttachedSequence:
    """A sequence attached to a field of a space.

    Parameters:
        sequence: the sequence.
        field_no: the number of the field, from 0.
        path: the path to the value within the field; "" for the field itself.
        current_user: returns the user that stores a row, which needs the right to use the sequence.
    """

    __slots__ = ("_current_user", "_steps", "field_no", "path", "sequence")

    def __init__(
        self,
        sequence: SequenceState,
        field_no: int,
        path: str,
        current_user: Callable[[], Credentials],
    ) -> None:
        self.sequence = sequence
        self.field_no = field_no
        self.path = path
        self._steps = _steps(path)
        self._current_user = current_user

    def fill(self, row: Tuple) -> Tuple:
        """Replace nil by the sequence's next value; any other value advances the sequence.

        Parameters:
            row: the unchecked row of an INSERT or REPLACE.

        Raises:
            BoxError: ACCESS_DENIED (42), SEQUENCE_OVERFLOW (147).
        """
        sequence = self.sequence
        if not sequence.is_generated:
            sequence.check_use(self._current_user())
        fields = row.fields
        value = self._value(fields)
        if value is not None:
            self._follow(value)
            return row
        drawn = sequence.next()
        number = self.field_no
        if self._steps:
            path = self.path if self.path[0] in ".[" else f".{self.path}"
            operations = operations_from_python([("=", f"[{number + 1}]{path}", drawn)], {})
            return Tuple(apply_update(operations, row.raw), row.format)
        raw = row.raw
        position = _HEADER_SIZES.get(raw[0], 1)
        for _ in range(number):
            position = skip(raw, position)
        filled = Tuple(raw[:position] + codec.pack(drawn) + raw[position + 1 :], row.format)
        filled.assume(row, number, drawn)
        return filled

    def follow(self, fields: Sequence[Any]) -> None:
        """Advance the sequence to the value of a loaded row."""
        value = self._value(fields)
        if value is not None:
            self._follow(value)

    def check_index(self, primary: Index) -> None:
        """Check that the value is a part of a primary index.

        Raises:
            BoxError: MODIFY_INDEX (14) if it is not, or does not hold integers only.
        """
        for part in primary.key_def.parts:
            if part.field_no == self.field_no and _steps(part.path or "") == self._steps:
                if part.type not in _INTEGERS:
                    reason = "sequence cannot be used with a non-integer key"
                    break
                return
        else:
            reason = "sequence field must be a part of the index"
        raise BoxError(ErrorCode.MODIFY_INDEX, primary.name, primary.space_name, reason)

    def _value(self, fields: Sequence[Any]) -> Any:
        """The value of a row at the sequence's field; `_MISSING` if there is none."""
        if len(fields) <= self.field_no:
            return _MISSING
        value: Any = fields[self.field_no]
        for step in self._steps:
            expected = list if type(step) is int else dict
            if step is None or type(value) is not expected:
                return _MISSING
            try:
                value = value[step]
            except LookupError:
                return _MISSING
        return value

    def _follow(self, value: object) -> None:
        # As in Tarantool, the sequence advances before other faults of the row are checked.
        if type(value) is int and value <= INT64_MAX:
            self.sequence.follow(value)


def _steps(path: str) -> tuple[Any, ...]:
    """The steps of a path; None for a step that leads to no single place."""
    return tuple(token.target for token in parse_json_path(path) if token.kind is not TokenKind.END)
