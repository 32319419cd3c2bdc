"""The end of logs that are being written: each row that counts is read once, whatever happens meanwhile."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.profiles import examples
from tests.spark.source.live_writer import LiveWriter
from tests.spark.source.stream_follower import Follower

SIZES = st.lists(st.sampled_from([1, 100, 3000, 70_000, 140_000]), min_size=1, max_size=6)
"""Three rows of 70,000 bytes are two blocks."""

SERVER = st.one_of(
    st.tuples(st.just("write"), SIZES, st.sampled_from([1, 2])),
    st.tuples(st.just("full disk"), SIZES, st.sampled_from([0.0, 0.3, 0.6, 0.9]), st.booleans()),
    st.just(("full disk", [140_000, 140_000, 1], 0.6, False)),
    st.tuples(st.just("sync"), SIZES),
    st.tuples(st.just("rotate")),
    st.tuples(st.just("restart"), st.integers(0, 60), st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from([0.4, 3.0])),
)
QUERY = st.sampled_from([("look",), ("look",), ("plan",), ("killed",), ("moved",), ("hint",), ("collect",)])


class World:
    """A server and a query that follow a list of what happens."""

    def __init__(self, directory: Path, max_bytes: int | None, partition_bytes: int) -> None:
        self.directory = directory / "0"
        self.directory.mkdir()
        self.writer = LiveWriter(self.directory)
        limit = {} if max_bytes is None else {"max_bytes_per_trigger": str(max_bytes)}
        self.query = Follower(
            self.directory, lambda: self.writer.now, partition_bytes=str(partition_bytes), **limit
        )
        self.writer.look = self.query.follow

    def do(self, kind: str, *values: Any) -> None:
        """Let something happen."""
        writer, query = self.writer, self.query
        match kind:
            case "write":
                writer.write(*values)
            case "full disk":
                sizes, part, may_cut = values
                writer.fail_to_write(sizes, part, may_cut=may_cut)
            case "sync":
                writer.fail_to_sync(*values)
            case "rotate":
                writer.rotate()
            case "restart":
                writer.restart(writer.torn_block(values[0]), cuts=values[1])
            case "wait":
                writer.now += values[0]
            case "look":
                query.follow()
            case "plan":
                query.plan()
            case "killed":
                self.kill_between()
            case "moved":
                self.move()
            case "hint":
                self.forget_hint()
            case "collect":
                query.follow()
                if query.rows == writer.rows:
                    writer.collect(keep=1)

    def kill_between(self) -> None:
        """The query is killed after a batch was planned, and plans it again, in the same parts."""
        if self.query.plan():
            parts = self.query.parts()
            self.query.restart()
            again = self.query.parts()
            assert [part.ranges for part in again] == [part.ranges for part in parts]
        self.query.restart()

    def move(self) -> None:
        """The query goes on in a copy of the directory, where the files are all new."""
        copy = self.directory.with_name("copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.directory, copy)
        self.query.restart(copy)
        self.query.plan()
        self.query.restart(self.directory)

    def forget_hint(self) -> None:
        """All that the checkpoint has beside the clock is wrong."""
        if self.query.start is not None and "vclock" in self.query.start:
            self.query.start = {**self.query.start, "file": "1.xlog", "offset": 7, "block": 10**9}
        self.query.restart()


@examples(100)
@given(
    happenings=st.lists(st.one_of(SERVER, QUERY), max_size=25),
    max_bytes=st.sampled_from([None, 1, 200, 1000]),
    partition_bytes=st.sampled_from([0, 500, 10_000]),
)
def test_each_row_is_read_once(
    happenings: list[tuple[Any, ...]], max_bytes: int | None, partition_bytes: int
) -> None:
    """Writes of several blocks, full disks, disks that fail to sync, torn tails, rotation, collected logs,
    queries that are killed, moved and lied to: what was acknowledged is read once, in order."""
    with TemporaryDirectory() as directory:
        world = World(Path(directory), max_bytes, partition_bytes)
        for happening in happenings:
            world.do(*happening)
        world.writer.now += 10
        world.query.follow()
        assert world.query.rows == world.writer.rows
