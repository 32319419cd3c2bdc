"""Long calls in slices: what runs in between, what stays, and what the caller gets."""

from __future__ import annotations

import itertools
from collections.abc import Generator

import pytest

from iproto_server import Box, BoxError, ErrorCode, ManualClock, Waiter
from iproto_server.box.access.session import Session
from iproto_server.box.api.slices import SLICE, WHOLE
from tests.queue_lua_compat.slow_journal import SlowJournal


class World:
    """A box with a space, whose later slices run when the clock is advanced."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.journal = SlowJournal()
        self.box = Box(clock=self.clock, journal=self.journal)
        self.space = self.box.schema.create_space("numbers", format=["id"])
        self.space.create_index("primary")
        self.session = self.box.session.open("binary", "127.0.0.1:50000", user="admin")
        self.users: set[str] = set()

    def steps(self, count: int, fails_at: int | None = None) -> Generator[None, None, str]:
        """Insert numbers, one in each step."""
        for number in range(count):
            if number == fails_at:
                raise BoxError.procedure("no more")
            self.users.add(self.box.session.user())
            self.space.insert([number])
            yield
        return "done"

    def call(self, count: int, fails_at: int | None = None, *, for_answer_only: bool = False) -> object:
        """Begin the work as a client's call does."""
        steps = self.steps(count, fails_at)
        return self.box.run(self.session, lambda: self.box.in_slices(steps, for_answer_only=for_answer_only))

    def begin(self, count: int, fails_at: int | None = None) -> Waiter:
        """Begin work of more than one slice."""
        waiter = self.call(count, fails_at)
        assert isinstance(waiter, Waiter)
        assert not waiter.is_done
        return waiter


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("count", [0, 1, SLICE])
def test_one_slice_is_answered_at_once(world: World, count: int) -> None:
    assert world.call(count) == "done"
    assert world.space.len() == count


def test_other_requests_run_between_the_slices(world: World) -> None:
    seen: list[int] = []
    waiter = world.begin(10 * SLICE)

    # Timers of the same moment run in the order in which they were set.
    def look() -> None:
        seen.append(world.space.len())
        if not waiter.is_done:
            world.clock.call_later(0.0, look)

    world.clock.call_later(0.0, look)
    world.clock.advance(0)
    assert waiter.result == "done"
    assert len(seen) >= 9
    assert all(after - before <= SLICE + 1 for before, after in itertools.pairwise(seen))


def test_the_answer_comes_with_the_last_slice(world: World) -> None:
    waiter = world.begin(SLICE + 2)
    world.clock.advance(0)
    assert waiter.is_done
    assert waiter.error is None
    assert world.space.len() == SLICE + 2


def test_later_slices_have_the_rights_of_the_call(world: World) -> None:
    world.box.schema.user.create("alice")
    world.session.become(world.box.access.by_name("alice"))
    world.box.schema.user.grant("alice", "read,write", "universe")
    _ = world.begin(2 * SLICE)
    world.clock.advance(0)
    assert world.users == {"alice"}


def test_an_error_is_the_answer_and_earlier_slices_stay(world: World) -> None:
    waiter = world.begin(10 * SLICE, fails_at=5 * SLICE)
    world.clock.advance(0)
    assert isinstance(waiter.error, BoxError)
    assert waiter.error.message == "no more"
    # The slice of the error is undone as a whole.
    assert 4 * SLICE <= world.space.len() < 5 * SLICE
    assert world.clock.pending == 0


def test_an_error_of_the_first_slice_is_raised(world: World) -> None:
    with pytest.raises(BoxError, match="no more"):
        world.call(10 * SLICE, fails_at=1)
    assert world.space.len() == 0
    assert world.clock.pending == 0


def test_it_ends_when_the_log_refuses_a_slice(world: World) -> None:
    world.journal.is_slow = True
    waiter = world.begin(10 * SLICE)
    world.journal.lose(world.box)
    world.clock.advance(0)
    assert isinstance(waiter.error, BoxError)
    assert waiter.error.code == ErrorCode.WAL_IO
    assert world.space.len() == 0


def test_the_answer_waits_for_the_log(world: World) -> None:
    written: list[object] = []
    world.box.when_written = written.append
    waiter = world.begin(2 * SLICE)
    world.clock.advance(0)
    assert world.space.len() == 2 * SLICE
    assert not waiter.is_done
    [answer] = written
    assert callable(answer)
    answer()
    assert waiter.result == "done"


def _end(session: Session) -> None:
    session.is_closed = True
    session.end()


def test_changes_go_on_when_the_client_has_gone(world: World) -> None:
    _ = world.begin(3 * SLICE)
    _end(world.session)
    world.clock.advance(0)
    assert world.space.len() == 3 * SLICE


def test_an_answer_that_nobody_awaits_is_not_worked_out(world: World) -> None:
    waiter = world.call(3 * SLICE, for_answer_only=True)
    assert isinstance(waiter, Waiter)
    before = world.space.len()
    _end(world.session)
    world.clock.advance(0)
    assert world.space.len() == before
    assert waiter.is_done


@pytest.mark.parametrize("count", [WHOLE, WHOLE + 1])
def test_a_stream_takes_it_in_one_piece_or_not_at_all(world: World, count: int) -> None:
    transaction = world.box.interactive.begin()
    world.box.interactive.resume(transaction)
    call = world.box.run_inside
    if count <= WHOLE:
        assert call(world.session, lambda: world.box.in_slices(world.steps(count))) == "done"
        return
    with pytest.raises(BoxError, match="does not support calls of more than 1000 steps"):
        call(world.session, lambda: world.box.in_slices(world.steps(count)))
    assert world.space.len() == 0
