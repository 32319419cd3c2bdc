"""Reading ahead in a thread."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from threading import Event, Thread, current_thread

import pytest

from iproto_server.storage.recovery.read_ahead import ReadAhead

WITHIN = 30


class Source:
    """Numbers, and who has read how many of them.

    Attributes:
        thread: the thread that read last.
        read: how many were read.
        has_read: set when as many were read as the test waits for.
    """

    def __init__(self, count: int, error: Exception | None = None, awaited: int = -1) -> None:
        self.thread: Thread | None = None
        self.read = 0
        self.has_read = Event()
        self._count = count
        self._error = error
        self._awaited = awaited

    def __iter__(self) -> Iterator[int]:
        for number in range(self._count):
            self.thread = current_thread()
            self.read += 1
            if self.read == self._awaited:
                self.has_read.set()
            yield number
        if self._error is not None:
            raise self._error


def test_all_items_come_in_order_from_another_thread() -> None:
    source = Source(1000)
    with ReadAhead(iter(source), 3) as numbers:
        assert list(numbers) == list(range(1000))
    assert source.thread is not None
    assert source.thread is not current_thread()
    assert not source.thread.is_alive()


def test_no_items() -> None:
    with ReadAhead(iter(Source(0))) as numbers:
        assert list(numbers) == []


def test_items_are_read_before_they_are_needed_but_no_more_than_allowed() -> None:
    source = Source(1000, awaited=3)
    with ReadAhead(iter(source), 3) as numbers:
        assert source.has_read.wait(WITHIN)
        assert source.read == 3
        assert next(numbers) == 0


def test_an_error_comes_after_the_items_before_it() -> None:
    found: list[int] = []
    with pytest.raises(OSError, match="the disk"), ReadAhead(iter(Source(5, OSError("the disk")))) as numbers:
        for number in numbers:
            found.append(number)  # noqa: PERF402
    assert found == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("needed", [0, 1, 500])
def test_the_thread_ends_when_no_more_items_are_wanted(needed: int) -> None:
    source = Source(1000, awaited=1)
    before = sys.getswitchinterval()
    with pytest.raises(ZeroDivisionError), ReadAhead(iter(source), 2) as numbers:
        for _ in range(needed):
            next(numbers)
        assert source.has_read.wait(WITHIN)
        raise ZeroDivisionError
    assert source.thread is not None
    assert not source.thread.is_alive()
    assert source.read <= needed + 2
    assert sys.getswitchinterval() == before
