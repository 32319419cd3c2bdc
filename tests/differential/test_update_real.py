"""UPDATE and UPSERT, asked of a real Tarantool: the same code and text, or the same bytes.

Kept away from it is what breaks Tarantool 2.6.0 itself: going into what another operation of the request has
replaced, one way spelled in two ways, '#' by path on an integer key, and lengths of -2^31.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import Final

import pytest

from iproto_server import codec
from iproto_server.box.update import Doubles, apply_update, apply_upsert, edit, parse_update
from iproto_server.box.update.descent import Descent
from iproto_server.box.update.document import Child
from iproto_server.box.update.operation import string_content
from iproto_server.errors import BoxError, ErrorCode
from tests.conftest import StartTarantool
from tests.differential.update_cases import DOUBLE_FIELD, FIELD_NAMES, UpdateCase, UpdateCases
from tests.iproto_client import (
    DELETE,
    INDEX_BASE,
    INDEX_ID,
    ITERATOR,
    KEY,
    LIMIT,
    OPERATIONS,
    REPLACE,
    SELECT,
    SPACE_ID,
    TUPLE,
    UPDATE,
    UPSERT,
    Answer,
    IprotoClient,
)
from tests.real_tarantool import GUEST_IS_SUPER

COUNT: Final = int(os.environ.get("UPDATE_CASES", "4000"))
SEED: Final = int(os.environ.get("UPDATE_SEED", "20260601"))
# So many are on their way at once: an answer takes longer than the work for it.
BATCH: Final = 200

SPACE: Final = 600
APPLICATION: Final = f"""
{GUEST_IS_SUPER}
box.schema.space.create('updated', {{id = {SPACE}, format = {{
    {{'id', 'unsigned'}},
    {{name = 'n', type = 'any', is_nullable = true}},
    {{name = 's', type = 'any', is_nullable = true}},
    {{name = 'm', type = 'any', is_nullable = true}},
    {{name = 'a', type = 'any', is_nullable = true}},
    {{name = 'd', type = 'double', is_nullable = true}},
    {{name = 'x.y', type = 'any', is_nullable = true}},
    {{name = 'ё', type = 'any', is_nullable = true}},
}}}})
box.space.updated:create_index('primary')
"""

NAMES: Final = {name: number for number, name in enumerate(FIELD_NAMES)}
DOUBLES: Final[Doubles] = frozenset({(DOUBLE_FIELD,)})
# The caller's checks of the result: the format's, and that the primary key is the same. (TUPLE_FOUND is told
# when the changed key is another row's.)
REFUSALS: Final = {
    ErrorCode.FIELD_TYPE,
    ErrorCode.FIELD_MISSING,
    ErrorCode.CANT_UPDATE_PRIMARY_KEY,
    ErrorCode.TUPLE_FOUND,
}

Outcome = bytes | tuple[int, str]


@pytest.fixture(scope="module")
def tarantool(real_tarantool: StartTarantool) -> Iterator[IprotoClient]:
    """A connection to a real Tarantool with the space."""
    server = real_tarantool(APPLICATION)
    with IprotoClient(server.host, server.port) as client:
        yield client


@pytest.fixture
def dangerous(monkeypatch: pytest.MonkeyPatch) -> list[Descent]:
    """Operations that would break Tarantool are added to this list while ours are applied."""
    found: list[Descent] = []
    inside_replaced = Descent.inside_replaced
    delete = edit.delete

    def remember_inside_replaced(descent: Descent) -> BoxError:
        found.append(descent)
        return inside_replaced(descent)

    def remember_delete(raw: bytes, descent: Descent, parent: edit.Parent, child: Child) -> edit.Edit:
        if child.key and string_content(child.key) is None:
            found.append(descent)
        return delete(raw, descent, parent, child)

    monkeypatch.setattr(Descent, "inside_replaced", remember_inside_replaced)
    monkeypatch.setattr(edit, "delete", remember_delete)
    return found


def updated(case: UpdateCase) -> Outcome:
    """What our UPDATE makes of a case."""
    try:
        return apply_update(parse_update(case.operations, NAMES, case.index_base), case.row, DOUBLES)
    except BoxError as error:
        return error.code, error.message


def upserted(case: UpdateCase) -> Outcome:
    """What our UPSERT makes of a case."""
    try:
        return apply_upsert(parse_update(case.operations, NAMES, case.index_base), case.row, DOUBLES)
    except BoxError as error:
        return error.code, error.message


def read(case: UpdateCase) -> Outcome:
    """What our UPSERT makes of a case where there is no row yet."""
    try:
        parse_update(case.operations, NAMES, case.index_base)
    except BoxError as error:
        return error.code, error.message
    return case.row


def is_refused(case: UpdateCase, raw: bytes) -> bool:
    """Whether a result fits the space no more."""
    fields = codec.split_array(raw)
    row_id = codec.unpack(fields[0]) if fields else None
    if type(row_id) is not int or row_id != case.row_id:
        return True
    return len(fields) > DOUBLE_FIELD and fields[DOUBLE_FIELD][0] not in (0xCB, 0xC0)


def body(entries: dict[int, bytes | int]) -> bytes:
    """A request's body of packed values."""
    parts = [codec.map_header(len(entries))]
    for key, value in entries.items():
        parts += [bytes((key,)), value if isinstance(value, bytes) else codec.pack(value)]
    return b"".join(parts)


def store(client: IprotoClient, case: UpdateCase) -> None:
    client.send(REPLACE, body({SPACE_ID: SPACE, TUPLE: case.row}))


def stored_tuple(answer: Answer) -> bytes | None:
    """The one row of an answer; None when there is none."""
    (raw,) = [pair[1] for pair in codec.split_map(answer.raw_body)]
    rows = codec.split_array(raw)
    return rows[0] if rows else None


def batches(cases: Iterator[UpdateCase]) -> Iterator[list[UpdateCase]]:
    while batch := list(islice(cases, BATCH)):
        yield batch


def test_update_answers_as_tarantool_does(tarantool: IprotoClient, dangerous: list[Descent]) -> None:
    compared = 0
    for batch in batches(islice(UpdateCases(SEED), COUNT)):
        sent: list[tuple[UpdateCase, Outcome]] = []
        for case in batch:
            dangerous.clear()
            ours = updated(case)
            if dangerous:
                continue
            store(tarantool, case)
            key = codec.pack([case.row_id])
            tarantool.send(
                UPDATE,
                body({SPACE_ID: SPACE, INDEX_BASE: case.index_base, KEY: key, TUPLE: case.operations}),
            )
            sent.append((case, ours))
        for case, ours in sent:
            assert tarantool.receive().ok, case
            answer = tarantool.receive()
            compared += 1
            if isinstance(ours, bytes) and is_refused(case, ours):
                assert answer.error_code in REFUSALS, (case, ours, answer)
            else:
                theirs = stored_tuple(answer) if answer.ok else (answer.error_code, answer.error)
                assert ours == theirs, (case, codec.unpack(case.row), codec.unpack(case.operations))
    assert compared > COUNT * 0.8


def test_upsert_answers_as_tarantool_does(tarantool: IprotoClient, dangerous: list[Descent]) -> None:
    compared = 0
    for batch in batches(islice(UpdateCases(SEED + 1), COUNT)):
        sent: list[tuple[UpdateCase, Outcome]] = []
        for case in batch:
            dangerous.clear()
            ours = upserted(case)
            if dangerous or (isinstance(ours, bytes) and is_refused(case, ours)):
                continue
            store(tarantool, case)
            tarantool.send(
                UPSERT,
                body(
                    {
                        SPACE_ID: SPACE,
                        INDEX_BASE: case.index_base,
                        TUPLE: case.row,
                        OPERATIONS: case.operations,
                    }
                ),
            )
            tarantool.send(SELECT, selection(case))
            sent.append((case, ours))
        for case, ours in sent:
            assert tarantool.receive().ok, case
            answer = tarantool.receive()
            row = stored_tuple(tarantool.receive())
            compared += 1
            theirs = row if answer.ok else (answer.error_code, answer.error)
            assert ours == theirs, (case, codec.unpack(case.row), codec.unpack(case.operations))
    assert compared > COUNT * 0.7


def test_an_upsert_that_inserts_reads_its_operations_and_no_more(tarantool: IprotoClient) -> None:
    for batch in batches(islice(UpdateCases(SEED + 2), COUNT // 4)):
        for case in batch:
            tarantool.send(DELETE, body({SPACE_ID: SPACE, KEY: codec.pack([case.row_id])}))
            tarantool.send(
                UPSERT,
                body(
                    {
                        SPACE_ID: SPACE,
                        INDEX_BASE: case.index_base,
                        TUPLE: case.row,
                        OPERATIONS: case.operations,
                    }
                ),
            )
            tarantool.send(SELECT, selection(case))
        for case in batch:
            tarantool.receive()
            answer = tarantool.receive()
            row = stored_tuple(tarantool.receive())
            ours = read(case)
            theirs = row if answer.ok else (answer.error_code, answer.error)
            assert ours == theirs, case
            assert (row is None) is not answer.ok


def selection(case: UpdateCase) -> bytes:
    """The body of a SELECT of the case's row."""
    return body({SPACE_ID: SPACE, INDEX_ID: 0, LIMIT: 1, ITERATOR: 0, KEY: codec.pack([case.row_id])})
