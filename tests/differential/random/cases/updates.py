"""UPDATE and UPSERT with all operations on fields, by number, name and path, and in what is inside of them.

Excluded, because they crash Tarantool 2.6.0: paths into a value that another operation of the request has
replaced, one path spelled in two ways, '#' by path on an integer key, and lengths of -2^31.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from unittest.mock import patch

from iproto_server.box.update import apply_upsert, edit, parse_update
from iproto_server.box.update.document import Child
from iproto_server.box.update.packed_values import string_content
from iproto_server.box.update.path_cursor import PathCursor
from iproto_server.errors import BoxError
from tests.differential.ddl.system_rows import ADMIN, INDEX, SPACE, delete, insert, select
from tests.differential.random.cases.update_cases import DOUBLE_FIELD, FIELD_NAMES, UpdateCase, update_case
from tests.differential.random.request import Request
from tests.differential.random.values.draws import Draws
from tests.differential.random.values.packing import Packed
from tests.iproto_client import INDEX_BASE, KEY, OPERATIONS, REPLACE, SPACE_ID, TUPLE, UPDATE, UPSERT

UPDATED: Final = 600
_CASES: Final = 12
_NAMES: Final = {name: number for number, name in enumerate(FIELD_NAMES)}
_FORMAT: Final = [
    {"name": "id", "type": "unsigned"},
    *(
        {"name": name, "type": "double" if number == DOUBLE_FIELD else "any", "is_nullable": True}
        for name, number in _NAMES.items()
        if number
    ),
]
_DEFINITION: Final = (
    Request.of(insert(SPACE, [UPDATED, ADMIN, "updated", "memtx", 0, {}, _FORMAT])),
    Request.of(insert(INDEX, [UPDATED, 0, "primary", "tree", {"unique": True}, [[0, "unsigned"]]])),
)


def update(draws: Draws) -> list[Request]:
    """Draw rows, and an UPDATE of each."""
    requests = list(_DEFINITION)
    for case in _cases(draws):
        requests += [
            _replace(case),
            Request(
                UPDATE,
                {
                    SPACE_ID: UPDATED,
                    INDEX_BASE: case.index_base,
                    KEY: [case.row_id],
                    TUPLE: Packed(case.operations),
                },
            ),
        ]
    return requests


def upsert(draws: Draws) -> list[Request]:
    """Draw an UPSERT of rows, some of which exist, and reads of the results."""
    requests = list(_DEFINITION)
    for case in _cases(draws):
        requests += [
            Request.of(delete(UPDATED, case.row_id)) if draws.rarely(4) else _replace(case),
            Request(
                UPSERT,
                {
                    SPACE_ID: UPDATED,
                    INDEX_BASE: case.index_base,
                    TUPLE: Packed(case.row),
                    OPERATIONS: Packed(case.operations),
                },
            ),
            Request.of(select(UPDATED, case.row_id)),
        ]
    return requests


def _cases(draws: Draws) -> Sequence[UpdateCase]:
    cases = (update_case(draws, row_id) for row_id in range(1, 1 + draws.pick(range(1, _CASES + 1))))
    return [case for case in cases if not is_dangerous(case)]


def _replace(case: UpdateCase) -> Request:
    return Request(REPLACE, {SPACE_ID: UPDATED, TUPLE: Packed(case.row)})


def is_dangerous(case: UpdateCase) -> bool:
    """Whether Tarantool 2.6.0 would read foreign memory."""
    found: list[PathCursor] = []
    inside_replaced = PathCursor.inside_replaced
    delete_inside = edit.delete

    def remember_inside_replaced(descent: PathCursor) -> BoxError:
        found.append(descent)
        return inside_replaced(descent)

    def remember_delete(raw: bytes, descent: PathCursor, parent: edit.Parent, child: Child) -> edit.Edit:
        if child.key and string_content(child.key) is None:
            found.append(descent)
        return delete_inside(raw, descent, parent, child)

    with (
        patch.object(PathCursor, "inside_replaced", remember_inside_replaced),
        patch.object(edit, "delete", remember_delete),
    ):
        try:
            # Unlike an UPDATE it continues after an operation that does not fit, so it can fail in more ways.
            apply_upsert(parse_update(case.operations, _NAMES, case.index_base), case.row)
        except BoxError:
            return bool(found)
    return bool(found)
