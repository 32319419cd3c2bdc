"""What changes make of the rows of a space: one by one, and those of many blocks together."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import RowEncoder, encode_row
from spark.source.definitions import SpaceDefinition
from spark.source.errors import SourceError
from spark.source.folding import Folding, TooIntricateError
from spark.source.log_span import PerMember, counting
from tests.spark.source.logged import changes_in, row_of, rows_in
from tests.storage.files import TIMESTAMP, deletion, insertion, replacement, update, upsert

SPACE: Final = 512
OTHER: Final = 513
FIRST: Final = 1000

KEYS: Final[dict[str, list[Any]]] = {
    "unsigned": [0, 127, 128, 300, 70_000, 2**32, 2**64 - 1],
    "number": [1, 300, 1.0, 0.5, -1],
    "string": ["", "a", "x" * 40],
    "scalar": [1, "a", True],
}


def space_of(kind: str, *, field: int = 0) -> SpaceDefinition:
    """A space with a primary key of one field."""
    index = (SPACE, 0, "primary", "tree", {"unique": True}, [[field, kind]])
    return SpaceDefinition(SPACE, "rows", 0, (), (index,), {}, False)


def everything() -> tuple[PerMember, PerMember]:
    """Limits within which all rows count."""
    return counting(VClock(), None, None)


def told(made: Folding) -> dict[bytes, Any]:
    """The fates of all keys; of operations that wait for their row, their numbers."""
    return {
        key: [(each.lsn, each.member) for each in fate] if isinstance(fate, list) else fate
        for key, fate in made.fates.items()
    }


@st.composite
def payloads(draw: st.DrawFn, kind: str) -> list[bytes]:
    """Blocks of a log."""
    keys = st.sampled_from(KEYS[kind])
    rows = st.tuples(keys, st.text(max_size=3))
    spaces = st.sampled_from([SPACE, SPACE, SPACE, OTHER])
    operations = st.sampled_from([[["=", 1, "new"]], [["=", 1, 7], ["!", 2, "more"]], [["=", 9, 0]]])
    requests = st.one_of(
        st.builds(lambda space, row: insertion(space, *row), spaces, rows),
        st.builds(lambda space, row: replacement(space, *row), spaces, rows),
        st.builds(deletion, spaces, keys),
        st.builds(lambda space, key, made: update(space, [key], made), spaces, keys, operations),
    )
    if draw(st.booleans()):
        requests |= st.builds(lambda row: upsert(SPACE, row, [["=", 1, "more"]]), rows)
    encoder = RowEncoder()
    lsn, found = FIRST, []
    for transaction in draw(st.lists(st.lists(requests, min_size=1, max_size=20), min_size=1, max_size=4)):
        found.append(encoder.transaction(lsn, TIMESTAMP, transaction))
        lsn += len(transaction)
    return found


@pytest.mark.parametrize("kind", KEYS)
@given(data=st.data())
def test_rows_found_together_have_the_same_fates(kind: str, data: st.DataObject) -> None:
    tasks = data.draw(st.integers(1, 3))
    task = data.draw(st.integers(0, tasks - 1))
    has_snapshot = data.draw(st.booleans())
    low, high = counting(
        VClock({1: data.draw(st.integers(FIRST - 2, FIRST + 3))}),
        data.draw(st.none() | st.builds(lambda lsn: VClock({1: lsn}), st.integers(FIRST, FIRST + 50))),
        None,
    )
    one_by_one, together = (
        Folding(space_of(kind), task, tasks, has_snapshot=has_snapshot, is_lenient=True) for _ in range(2)
    )
    for payload in data.draw(payloads(kind)):
        changes, rows = changes_in(payload), rows_in(payload)
        one_by_one.follow(changes, low, high)
        if rows is None or not data.draw(st.integers(0, 4)):
            together.follow(changes, low, high)
        else:
            together.follow_rows(rows, low, high)
        assert told(together) == told(one_by_one)
    assert list(together.undecided) == list(one_by_one.undecided)


def test_tasks_share_the_rows() -> None:
    """Each is given out by one of them."""
    encoder = RowEncoder()
    payload = b"".join(
        encoder.transaction(FIRST + number, TIMESTAMP, (replacement(SPACE, number, "text"),))
        for number in range(300)
    )
    rows = rows_in(payload)
    assert rows is not None
    given_out: list[bytes] = []
    for task in range(3):
        made = Folding(space_of("unsigned"), task, 3)
        made.follow_rows(rows, *everything())
        own = list(made.rows())
        assert 80 <= len(own) <= 120
        given_out += own
    assert len(given_out) == len(set(given_out)) == 300


def test_what_does_not_fit_is_told_with_its_number() -> None:
    requests = [replacement(SPACE, 1, "a"), replacement(SPACE, 2, "b"), update(SPACE, [2], [["+", 1, 1]])]
    rows = rows_in(RowEncoder().transaction(FIRST, TIMESTAMP, requests))
    assert rows is not None
    with pytest.raises(SourceError, match=rf"row {FIRST + 2} of the member 1, space 'rows'"):
        Folding(space_of("unsigned")).follow_rows(rows, *everything())
    lenient = Folding(space_of("unsigned"), is_lenient=True)
    lenient.follow_rows(rows, *everything())
    assert len(list(lenient.rows())) == 2


def test_names_are_not_understood_where_they_change() -> None:
    """Even by a task whose rows these are not."""
    requests = [update(SPACE, [number], [["=", "text", "new"]]) for number in range(5)]
    rows = rows_in(RowEncoder().transaction(FIRST, TIMESTAMP, requests))
    assert rows is not None
    for task in range(3):
        for has_snapshot in (True, False):
            made = Folding(space_of("unsigned"), task, 3, has_snapshot=has_snapshot, is_renamed=True)
            with pytest.raises(TooIntricateError):
                made.follow_rows(rows, *everything())


def test_a_member_that_cannot_be_is_an_error() -> None:
    rows = rows_in(encode_row(row_of(insertion(SPACE, 1), 100, FIRST)))
    assert rows is not None
    with pytest.raises(SourceError, match="of the member 100"):
        Folding(space_of("unsigned")).follow_rows(rows, *everything())
