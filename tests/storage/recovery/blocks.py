"""Databases of written blocks, loaded in both ways."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from iproto_server import Box
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.storage.directory import file_name
from iproto_server.storage.errors import StorageError
from iproto_server.storage.recovery.recovery import recover
from iproto_server.storage.xlog import FileType, RowEncoder, RowType, XlogWriter, insert_body
from tests.storage.databases import JOBS, jobs_box
from tests.storage.files import TIMESTAMP, Request, header
from tests.storage.recovery.careful_loading import careful_loading

MANY, NUMBERED, HASHED = 600, 601, 602


def the_box() -> Box:
    """A box with spaces of several kinds, all empty."""
    box = jobs_box()
    many = box.schema.create_space("many", id=MANY)
    many.create_index("primary", parts=[(1, "number"), (0, "string")])
    many.create_index("unique", parts=[{"field": 2, "type": "number", "is_nullable": True}])
    many.create_index("text", parts=[(3, "string")], unique=False)
    many.create_index("hash", type="hash", parts=[(1, "number"), (0, "string")])
    numbered = box.schema.create_space("numbered", id=NUMBERED)
    box.schema.sequence.create("ids")
    numbered.create_index("primary", sequence="ids")
    hashed = box.schema.create_space("hashed", id=HASHED)
    hashed.create_index("primary", type="hash")
    hashed.create_index("tree", parts=[(1, "string")], unique=False)
    return box


def system_rows() -> list[Request]:
    return [
        (RowType.INSERT, insert_body(space.id, raw))
        for space in sorted(the_box().catalog, key=lambda space: space.id)
        if not isinstance(space, SysviewSpace)
        for raw in space.rows()
    ]


def write_blocks(path: Path, file_type: FileType, blocks: Sequence[Sequence[bytes]], clock: int) -> None:
    """Write a file of blocks."""
    with path.open("wb", buffering=0) as file:
        writer = XlogWriter.create(file, header(file_type, {1: clock} if clock else {}))
        for rows in blocks:
            writer.write([b"".join(rows)])
        writer.end()


def write_snapshot(directory: Path, blocks: Sequence[Sequence[Request]]) -> None:
    """Write a snapshot whose rows are in these blocks."""
    encoder = RowEncoder()
    encoded = [[encoder.transaction(0, TIMESTAMP, (row,)) for row in rows] for rows in blocks]
    write_blocks(directory / file_name(FileType.SNAPSHOT, 1), FileType.SNAPSHOT, encoded, 1)


def contents(box: Box) -> dict[str, Any]:
    """All rows, as all indexes have them."""
    return {
        space.name: (
            space.bsize,
            len(space),
            [(index.name, len(index), sorted(index.items())) for index in space.indexes.values()],
        )
        for space in box.catalog
        if not isinstance(space, SysviewSpace)
    }


def outcome(directory: Path, *, force: bool) -> Any:
    """What a start results in."""
    box = Box()
    try:
        result = recover(box, directory, directory, force=force, read_only=True)
    except StorageError as error:
        return str(error)
    assert result is not None
    return contents(box), result.damages, result.rows, result.vclock


def check_same(directory: Path, *, force: bool) -> Any:
    """Start twice; return the result, which is the same one."""
    compiled = outcome(directory, force=force)
    with careful_loading():
        assert compiled == outcome(directory, force=force)
    return compiled


values = st.one_of(
    st.integers(0, 9),
    st.integers(-5, 70_000),
    st.floats(0, 9),
    st.none(),
    st.text("ab\0", max_size=12),
    st.sampled_from(
        [Decimal("1.5"), UUID(int=7), b"bytes", {"a": [1, {}]}, [[[]]], {(): 1}, True, 2**64 - 1]
    ),
)
fitting = {
    JOBS: st.tuples(st.integers(0, 99), st.text("RT", max_size=9), values).map(list),
    MANY: st.tuples(
        st.sampled_from("abc"),
        st.integers(0, 9) | st.floats(0, 9),
        st.integers(0, 30) | st.none(),
        st.text("xyz"),
        values,
    ).map(list),
    NUMBERED: st.tuples(st.integers(0, 99), values).map(list),
    HASHED: st.tuples(st.integers(0, 99), st.text("RT", max_size=9), values).map(list),
}
anything = st.one_of(
    *(
        st.tuples(st.just(space), rows | st.lists(values, max_size=5) if is_wild else rows)
        for space, rows in fitting.items()
        for is_wild in (False, True)
    ),
    st.tuples(st.just(700), st.just([1])),
)
