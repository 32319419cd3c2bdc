"""The option `sequence` of `create_index`: the sequence that numbers the rows of a space, and the field.

Source: Tarantool reference, "Specifying a sequence in create_index()".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from iproto_server.box.access.access_control import Privilege
from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.sequences import SequenceSchema
from iproto_server.box.catalog import system_space_ids as system
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.errors import BoxError, ErrorCode

FieldResolver = Callable[[Any], tuple[int, "str | None"]]
"""Maps a field's name, number or path to its 0-based number and the path within it."""

_BY_SEQUENCE = 1


def attachment(
    box: BoxCore,
    space: MemtxSpace,
    index_id: int,
    index_name: str,
    parts: Sequence[Any],
    option: object,
    resolve: FieldResolver,
) -> list[Any] | None:
    """The row of `_space_sequence` for a new index, made before the index.

    Parameters:
        box: the box.
        space: the index's space.
        index_id, index_name: the index's.
        parts: as in `_index`.
        option: True: create a sequence for the space; a name or number: an existing sequence; a mapping
            with "id" and "field"; None or False: no sequence.
        resolve: finds the field of such a mapping.

    Returns: the row; None for no sequence.

    Raises:
        BoxError: MODIFY_INDEX (14), NO_SUCH_SEQUENCE (145), ALTER_SPACE (12), ILLEGAL_PARAMS (1).
    """
    if index_id != 0:
        if option is None or option is False:
            return None
        reason = "sequence cannot be used with a secondary key"
        raise BoxError(ErrorCode.MODIFY_INDEX, index_name, space.name, reason)
    box.access.check_space(
        box.session.current.credentials, Privilege.READ, box.catalog.space(system.SPACE_SEQUENCE)
    )
    if option is None or option is False:
        return None
    which, field = option, None
    if isinstance(option, Mapping):
        which, field = option.get("id"), option.get("field")
    elif option is True or isinstance(option, list | tuple):
        which = None
    sequence_id = None if which is None else _shared(box, space, which)
    place = _place(space, index_name, parts, None if field is None else resolve(field))
    if sequence_id is None:
        return [space.id, SequenceSchema(box).create(f"{space.name}_seq").id, True, *place]
    return [space.id, sequence_id, False, *place]


def _shared(box: BoxCore, space: MemtxSpace, which: object) -> int:
    """The number of an existing sequence, which must not be another space's own."""
    row = SequenceSchema(box).row(which)
    if row is None:
        raise BoxError(ErrorCode.NO_SUCH_SEQUENCE, which)
    sequence_id: int = row[0]
    uses = box.catalog.rows(system.SPACE_SEQUENCE, _BY_SEQUENCE, [sequence_id])
    if uses and uses[0][2]:
        raise BoxError(ErrorCode.ALTER_SPACE, space.name, "can not attach generated sequence")
    return sequence_id


def _place(
    space: MemtxSpace, index_name: str, parts: Sequence[Any], wanted: tuple[int, str | None] | None
) -> tuple[int, str]:
    """The field and the path of the part that takes its values from the sequence."""
    for part in parts:
        definition = part if isinstance(part, dict) else {"field": part[0], "type": part[1]}
        place = definition["field"], definition.get("path") or ""
        if wanted is None or (wanted[0], wanted[1] or "") == place:
            if definition["type"] in ("integer", "unsigned"):
                return place
            reason = "sequence cannot be used with a non-integer key"
            break
    else:
        reason = "sequence field must be a part of the index"
    raise BoxError(ErrorCode.MODIFY_INDEX, index_name, space.name, reason)
