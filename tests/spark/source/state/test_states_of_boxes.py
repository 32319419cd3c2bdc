"""States compared with what a database of this server held at that moment."""

from __future__ import annotations

import tempfile
from itertools import count
from pathlib import Path
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.profiles import examples
from tests.spark.source.states import packed, small_pieces
from tests.storage.sample_database import OpenDatabase

SPACE = 600

Step = tuple[str, int, int]

_KINDS = ["insert", "replace", "replace", "update", "upsert", "delete", "delete", "several", "truncate"]
steps = st.lists(
    st.tuples(
        st.sampled_from([*_KINDS, "snapshot", "restart", "create again", "other"]),
        st.integers(0, 12).map(lambda number: number * 97),
        st.integers(0, 3),
    ),
    max_size=40,
)


class Then(NamedTuple):
    """What there was.

    Attributes:
        lsn: After so many changes.
        time: And until that time.
        rows: The packed tuples, sorted; None if there was no space.
    """

    lsn: int
    time: float
    rows: list[bytes] | None


class Life:
    """A database that goes through some steps, and what it held after each of them.

    Parameters:
        directory: Where its files go.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.times = map(float, count(1_700_000_000, 10))
        self.database = self._open()
        self.memories: list[Then] = []

    def _open(self) -> OpenDatabase:
        database = OpenDatabase(self.directory, max_size=300)
        database.storage.log.clock = lambda: next(self.times)
        return database

    def live(self, steps: list[Step]) -> None:
        """Go through the steps, and end."""
        self._create()
        self.remember()
        for step in steps:
            self._take(*step)
            self.remember()
        self.database.close()

    def _create(self) -> None:
        """Create the space, always with the same number."""
        space = self.database.box.schema.create_space(
            "rows", id=SPACE, format=[("id", "unsigned"), ("text", "string")]
        )
        space.create_index("primary", parts=["id"])
        self.database.flush()

    def _take(self, kind: str, key: int, value: int) -> None:
        box, rows = self.database.box, self.database.box.space.rows
        if kind == "snapshot":
            self.database.snapshot()
        elif kind == "restart":
            self.database.close()
            self.database = self._open()
        elif kind == "create again":
            rows.drop()
            self._create()
        elif kind == "several":
            self.database.commit([(key, f"{value}"), (key + 97, None), (key + 194, "more" * value)])
        elif kind == "other":
            if "other" not in box.space:
                box.schema.create_space("other").create_index("primary")
            box.space.other.replace([key, value])
        elif kind == "truncate":
            rows.truncate()
        elif kind == "update":
            rows.update(key, [("=", "text", "text" * value)])
        elif kind == "upsert":
            rows.upsert([key, "new"], [("=", 1, f"changed {value}")])
        elif kind == "delete":
            rows.delete(key)
        elif kind == "replace" or rows.get(key) is None:
            rows.replace([key, "text" * value])
        self.database.flush()

    def remember(self) -> None:
        """Note what there is now."""
        clock = self.database.storage.log.vclock
        rows = sorted(self.database.box.space.rows.core().rows())
        self.memories.append(Then(clock.get(1, 0), next(self.times) + 1, rows))


class TestAnyLife:
    @examples(25)
    @given(steps, st.data())
    def test_each_moment_is_as_the_box_was_then(self, steps: list[Step], data: st.DataObject) -> None:
        with tempfile.TemporaryDirectory() as name, small_pieces():
            path = Path(name)
            life = Life(path)
            life.live(steps)
            sizes = st.sampled_from([0, 2000, 10_000, 100_000])
            now = packed(path, "rows", partition_bytes=data.draw(sizes))
            assert now == life.memories[-1].rows
            for then in data.draw(st.lists(st.sampled_from(life.memories), max_size=4)):
                size = data.draw(sizes)
                at_lsn = packed(path, "rows", mode="at_lsn", lsn=then.lsn, partition_bytes=size)
                assert at_lsn == then.rows
                at_time = packed(path, "rows", mode="at_time", time=then.time, partition_bytes=size)
                assert at_time == then.rows
