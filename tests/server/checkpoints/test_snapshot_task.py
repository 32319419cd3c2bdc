"""The pace of a snapshot: when it leaves the loop to other work, on a clock that the tests set."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from iproto_server import Box
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.memtx.read_view import Reader, ReadView
from iproto_server.codec import msgpack as codec
from iproto_server.server.checkpoints.snapshot_task import (
    BUSY,
    PAUSE,
    QUEUE_LENGTH,
    SLICE,
    SLICE_BLOCKS,
    SnapshotTask,
)
from iproto_server.storage.snapshot import read_snapshot
from iproto_server.storage.xlog import FileType, OnDamage, RowType, XlogReader
from iproto_server.storage.xlog.block import BLOCK_SIZE
from tests.storage.files import TIMESTAMP, header, rows_in

STEPS = 60
"""Steps in which the rows are read."""

OWN = SLICE / 4
"""Seconds that each takes: four make a slice."""


class World:
    """Time, the processor, and other work on the loop.

    Attributes:
        now: the time in seconds.
        used: the processor time of the loop's thread.
        load: the share of its time that the loop is busy with other work while the snapshot waits.
        iteration: how long an iteration of the loop takes.
        slept: how long the snapshot waited each time; 0 for one iteration.
    """

    def __init__(self, load: float = 0.0) -> None:
        self.now = 1000.0
        self.used = 5.0
        self.load = load
        self.iteration = 2 * SLICE
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        passed = seconds or self.iteration
        self.now += passed
        self.used += passed * self.load
        await asyncio.sleep(0)

    def read(self, seconds: float) -> None:
        """The snapshot itself is busy."""
        self.now += seconds
        self.used += seconds


class SlowRows(Reader):
    """Rows of a space, read in steps that take time.

    Parameters:
        space: the space.
        world: the clock.
        step: bytes of a step.
        own: seconds that a step takes.
        on_step: called with the number of each step.
    """

    def __init__(
        self,
        space: MemtxSpace,
        world: World,
        step: int = 1000,
        own: float = OWN,
        on_step: Callable[[int], object] = int,
    ) -> None:
        super().__init__(space)
        self._world = world
        self._step = step
        self._own = own
        self._on_step = on_step
        self._taken = 0

    @property
    def is_done(self) -> bool:
        return self._taken == STEPS

    @property
    def kept(self) -> int:
        return 0

    def take(self, count: int, size: int) -> list[bytes]:
        self._on_step(self._taken)
        self._taken += 1
        self._world.read(self._own)
        return [row(self._taken, self._step)]

    def close(self) -> None:
        self._taken = STEPS


class View(ReadView):
    """A view of such rows."""

    def __init__(self, world: World, **arguments: Any) -> None:
        super().__init__(())
        box = Box()
        space = box.schema.create_space("rows")
        self._readers = [SlowRows(space.core(), world, **arguments)]


class InPlace(Executor):
    """Does everything at once, in the place of a thread."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(function(*args, **kwargs))
        return done


class Held(InPlace):
    """Writes blocks only when it is told to; the file is opened and finished at once.

    Attributes:
        held: what it was told to write.
    """

    def __init__(self) -> None:
        self.held: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if function.func.__name__ != "write_blocks":  # type: ignore[attr-defined]  # a partial
            return super().submit(function, *args, **kwargs)
        future: Future[Any] = Future()
        self.held.append((future, function))
        return future

    def go_on(self) -> None:
        """Write the blocks that were held first."""
        future, function = self.held.pop(0)
        future.set_result(function())


def row(number: int, size: int) -> bytes:
    return codec.pack([number, "x" * (size - 10)])


def task_in(
    directory: Path, world: World, rate_limit: float | None = None, executor: Executor | None = None
) -> SnapshotTask:
    return SnapshotTask(
        directory,
        header(FileType.SNAPSHOT, {1: 42}),
        TIMESTAMP,
        executor or InPlace(),
        rate_limit,
        lambda: world.now,
        world.sleep,
        lambda: world.used,
    )


def rows_of(task: SnapshotTask) -> list[bytes]:
    with XlogReader.open(task.path, OnDamage.STOP) as reader:
        return [raw for batch in read_snapshot(reader) for _, raw in batch]


def slept(directory: Path, world: World, **arguments: Any) -> list[float]:
    """Write a snapshot, check it, and return how long it waited each time."""

    async def write() -> None:
        task = task_in(directory, world)
        await task.write(View(world, **arguments))
        await task.publish()
        size = arguments.get("step", 1000)
        assert rows_of(task) == [row(number, size) for number in range(1, STEPS + 1)]
        assert task.rows == STEPS

    asyncio.run(write())
    return world.slept


def test_an_idle_loop_is_left_for_one_iteration_only(tmp_path: Path) -> None:
    assert slept(tmp_path, World()) == [0] * (STEPS // 4)


def test_a_busy_loop_gets_a_pause_after_each_slice_but_the_first(tmp_path: Path) -> None:
    assert slept(tmp_path, World(load=0.9)) == [0] + [PAUSE] * (STEPS // 4 - 1)


@pytest.mark.parametrize(("load", "does_pause"), [(BUSY - 0.01, False), (BUSY + 0.03, True)])
def test_only_a_share_of_other_work_counts(load: float, does_pause: bool, tmp_path: Path) -> None:
    world = World(load)
    world.iteration = 10 * SLICE
    waits = slept(tmp_path, world)
    assert (PAUSE in waits) == does_pause
    assert waits[0] == 0


def test_pauses_begin_and_end_with_the_load(tmp_path: Path) -> None:
    world = World()

    def change(step: int) -> None:
        world.load = 0.8 if 20 <= step < 40 else 0.0

    waits = slept(tmp_path, world, on_step=change)
    # Four steps make a slice; what the loop does after one decides on the wait after the next one.
    assert waits == [0] * 5 + [0] + [PAUSE] * 4 + [PAUSE] + [0] * 4


def test_a_slice_ends_with_its_time(tmp_path: Path) -> None:
    world = World()
    steps: list[int] = []
    slept(tmp_path, world, on_step=lambda step: steps.append(len(world.slept)))
    assert steps == [number // 4 for number in range(STEPS)]


def test_a_slice_has_only_so_many_blocks(tmp_path: Path) -> None:
    world = World()
    steps: list[int] = []
    slept(tmp_path, world, step=BLOCK_SIZE // 2, own=0.0, on_step=lambda step: steps.append(len(world.slept)))
    assert steps == [number // (2 * SLICE_BLOCKS) for number in range(STEPS)]


def test_a_rate_limit_makes_it_wait(tmp_path: Path) -> None:
    async def write() -> float:
        world = World()
        begun = world.now
        task = task_in(tmp_path, world, rate_limit=100.0)
        await task.write(View(world, step=BLOCK_SIZE))
        await task.publish()
        assert task.path.stat().st_size > 10 * 100
        return (world.now - begun) / (task.path.stat().st_size / 100)

    assert 0.8 < asyncio.run(write()) < 1.1


def test_rows_of_all_kinds_of_spaces_are_written(tmp_path: Path) -> None:
    box = Box()
    for number in range(3):
        space = box.schema.create_space(f"space {number}", is_local=number == 1)
        space.create_index("primary", type="hash" if number == 2 else "tree", parts=[(0, "number")])
        for key in range(3000):
            space.insert([key, f"{number} {key}"])
        space.insert([Decimal("0.5"), b"a key that only Python makes"])
    spaces = [space for space in box.catalog if space.engine == "memtx" and not space.is_temporary]
    expected = [
        (space.id, int(space.flags.get("group_id", 0)), row)
        for space in sorted(spaces, key=lambda space: space.id)
        for row in space.rows()
    ]

    async def write() -> None:
        task = task_in(tmp_path, World(load=0.5))
        with ReadView.of_kept(box.catalog) as view:
            await task.write(view)
        await task.publish()
        rows = rows_in(task.path)
        found = [(row.space_id, row.group_id, row.tuple_raw) for row in rows]
        # Rows of a HASH index, which come last, have no order.
        assert (found[:-3001], sorted(found[-3001:])) == (expected[:-3001], sorted(expected[-3001:]))
        assert [row.lsn for row in rows] == list(range(len(expected)))
        assert {(row.type, row.timestamp) for row in rows} == {(RowType.INSERT, TIMESTAMP)}
        assert task.rows == len(expected)

    asyncio.run(write())


def test_it_waits_for_the_thread(tmp_path: Path) -> None:
    async def write() -> None:
        executor = Held()
        task = task_in(tmp_path, World(), executor=executor)
        work = asyncio.create_task(task.write(View(World(), step=BLOCK_SIZE)))
        written = 0
        while not work.done():
            for _ in range(20):
                await asyncio.sleep(0)
            assert len(executor.held) <= QUEUE_LENGTH
            if executor.held:
                executor.go_on()
                written += 1
        await work
        assert written == STEPS // SLICE_BLOCKS
        await task.publish()
        assert len(rows_of(task)) == STEPS

    asyncio.run(write())


def test_a_failed_write_ends_it(tmp_path: Path) -> None:
    class Full(InPlace):
        def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            if function.func.__name__ != "write_blocks":  # type: ignore[attr-defined]  # a partial
                return super().submit(function, *args, **kwargs)
            failed: Future[Any] = Future()
            failed.set_exception(OSError(28, "No space left on device"))
            return failed

    async def write() -> None:
        task = task_in(tmp_path, World(), executor=Full())
        with pytest.raises(Exception, match=r"failed to write to '.*inprogress' file"):
            await task.write(View(World(), step=BLOCK_SIZE))
        await task.discard()

    asyncio.run(write())
    assert list(tmp_path.iterdir()) == []
