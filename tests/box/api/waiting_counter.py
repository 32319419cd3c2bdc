"""A counter whose calls wait."""

from __future__ import annotations

from collections.abc import Callable

from iproto_server import STILL_WAITING, Space, Waiter, WaitQueue
from iproto_server.box.access.session import Session
from tests.box.boxes import new_box


class Counter:
    """A counter in a space: callers wait until they can take something away from it.

    Attributes:
        answers: the callers' names and what they got, in the order of the answers.
    """

    def __init__(self) -> None:
        self.box, self.clock = new_box()
        self.space: Space = self.box.schema.create_space("counter")
        self.space.create_index("primary")
        self.space.insert([1, 0])
        self.line = WaitQueue(self.box)
        self.answers: list[tuple[str, object]] = []

    @property
    def value(self) -> int:
        """The value of the counter."""
        row = self.space.get(1)
        assert row is not None
        value: int = row[1]
        return value

    def session(self, name: str) -> Session:
        """A caller with the privileges to take."""
        return self.box.session.open("binary", name, user="admin")

    def take(self) -> object:
        """Decrement the counter, or find nothing."""
        return self.space.update(1, [("-", 1, 1)])[1] if self.value else STILL_WAITING  # type: ignore[index]

    def add(self, count: int = 1, wakes: int | None = None) -> None:
        """Add to the counter and wake as many waiters, in one transaction."""

        def procedure() -> None:
            self.space.update(1, [("+", 1, count)])
            self.line.wake(count if wakes is None else wakes)

        self.box.run(self.box.session.background, procedure)

    def wait(
        self,
        name: str,
        timeout: float = 60,
        resume: Callable[[], object] | None = None,
        session: Session | None = None,
    ) -> Waiter:
        """Let a caller wait in a session of its own; return its waiter."""
        session = session or self.session(name)
        waiter = self.box.run(session, self.line.park, timeout, resume or self.take)
        waiter.on_done(lambda done: self.answers.append((name, done.error or done.result)))
        return waiter

    def let_wait(self, name: str, timeout: float = 60, resume: Callable[[], object] | None = None) -> None:
        """Let a caller wait whose result is added to `answers`."""
        _ = self.wait(name, timeout, resume)
