"""Changes of rows, refused ones too, leave all indexes with the same rows."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from iproto_server import Box, BoxError
from iproto_server.box.memtx.read_view import ReadView
from tests.plugins.profiles import examples

small = st.integers(0, 4)
names = st.sampled_from(["a", "b", "é", "\0", None])
changes = st.lists(
    st.tuples(st.just("insert") | st.just("replace"), small, small, names)
    | st.tuples(st.just("delete"), small)
    | st.tuples(st.just("update"), small, st.integers(1, 2), small | names),
    max_size=25,
)


def space_of(box: Box) -> Any:
    space = box.schema.create_space(
        "things",
        format=[
            ("id", "unsigned"),
            ("rank", "unsigned"),
            {"name": "name", "type": "string", "is_nullable": True},
        ],
    )
    space.create_index("primary", parts=["id"])
    space.create_index("rank", parts=["rank", "id"])
    space.create_index("name", parts=["name"], unique=False)
    space.create_index("both", parts=["name", "rank"])
    return space


def carry_out(given_changes: list[tuple[Any, ...]], is_watched: bool) -> tuple[list[object], list[list[Any]]]:
    """What each change answers, and what every index holds in the end."""
    box = Box()
    space = space_of(box)
    answers: list[object] = []
    view = ReadView.of_kept(box.catalog.spaces.values()) if is_watched else None
    for change, key, *rest in given_changes:
        try:
            if change == "delete":
                answers.append(space.delete(key))
            elif change == "update":
                answers.append(space.update(key, [("=", rest[0], rest[1])]))
            else:
                answers.append(getattr(space, change)([key, *rest]))
        except BoxError as error:
            answers.append((error.code, error.message))
    if view is not None:
        view.close()
    held = [[list(row) for row in space.index[number].select()] for number in range(4)]
    assert space.bsize() == sum(len(row.raw) for row in space.select())
    assert [len(space.core().index(number)) for number in range(4)] == [len(held[0])] * 4
    return answers, held


def refused(rows: dict[int, list[Any]], row: list[Any]) -> bool:
    """Tell whether another row has the key of the index `both`; a nil is equal to nothing."""
    name, rank = row[2], row[1]
    return name is not None and any(
        [name, rank] == [each[2], each[1]] for each in rows.values() if each[0] != row[0]
    )


def expected_of(given_changes: list[tuple[Any, ...]]) -> dict[int, list[Any]]:
    """The rows by their primary key, after changes without those that are refused."""
    rows: dict[int, list[Any]] = {}
    for change, key, *rest in given_changes:
        row = [key, *rest]
        if change == "delete":
            rows.pop(key, None)
            continue
        if change == "update":
            if key not in rows:
                continue
            row = list(rows[key])
            row[rest[0]] = rest[1]
            fits = isinstance(row[1], int) and (row[2] is None or isinstance(row[2], str))
            if not fits:
                continue
        if (change != "insert" or key not in rows) and not refused(rows, row):
            rows[key] = row
    return rows


def sort_key(fields: list[Any]) -> list[Any]:
    return [(field is not None, field) for field in fields]


@examples(60)
@given(changes, st.booleans())
def test_changes_of_rows(given_changes: list[tuple[Any, ...]], is_watched: bool) -> None:
    _, held = carry_out(given_changes, is_watched)
    rows = expected_of(given_changes).values()
    parts = [[0], [1, 0], [2, 0], [2, 1, 0]]
    orders = [sorted(rows, key=lambda row: sort_key([row[part] for part in each])) for each in parts]
    assert held == orders


def test_rows_change_while_a_view_is_open() -> None:
    box = Box()
    space = space_of(box)
    space.insert([1, 1, "a"])
    with ReadView.of_kept(box.catalog.spaces.values()) as view:
        space.replace([1, 2, "b"])
        rows = [row for space_id, _, found in view.slices() if space_id == space.id for row in found]
    assert rows == [b"\x93\x01\x01\xa1a"]
    assert list(space.get(1)) == [1, 2, "b"]
