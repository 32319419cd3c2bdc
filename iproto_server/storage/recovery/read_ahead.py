"""Reading ahead: a thread reads and decompresses the next blocks of a file while rows are loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Final, Generic, NamedTuple, TypeVar

Item = TypeVar("Item")

AHEAD: Final = 8
"""Blocks that are read before they are needed."""

SWITCH_INTERVAL: Final = 0.0005
"""Seconds that the thread waits for the interpreter's lock, at most, while Python loads rows. With Python's
default, ten times as many, the thread would be the slower one."""


class _End(NamedTuple):
    """The end of the items.

    Attributes:
        error: The exception that ended the reading; None if there were no more items.
    """

    error: BaseException | None


class ReadAhead(Generic[Item]):
    """Iterates over items that a thread reads. Use as a context manager: the thread ends with it.

    Parameters:
        items: The iterator that the thread uses. Its exceptions are raised here, after the items before.
        ahead: The number of items that are read before they are needed.
    """

    def __init__(self, items: Iterator[Item], ahead: int = AHEAD) -> None:
        self._items = items
        self._room = Semaphore(ahead)
        self._read: SimpleQueue[Item | _End] = SimpleQueue()
        self._is_closed = False
        self._thread = Thread(target=self._read_all, name="read-ahead", daemon=True)

    def __enter__(self) -> Iterator[Item]:
        self._switch_interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._thread.start()
        return self._each()

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        self._room.release()
        self._thread.join()
        sys.setswitchinterval(self._switch_interval)

    def _each(self) -> Iterator[Item]:
        while not isinstance(item := self._read.get(), _End):
            self._room.release()
            yield item
        if item.error is not None:
            raise item.error

    def _read_all(self) -> None:
        error: BaseException | None = None
        try:
            self._room.acquire()
            while not self._is_closed:
                self._read.put(next(self._items))
                self._room.acquire()
        except StopIteration:
            """There are no more items."""
        except BaseException as raised:  # noqa: BLE001  # it is raised where the items are used
            error = raised
        self._read.put(_End(error))
