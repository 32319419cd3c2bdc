"""Reading ahead: a thread reads and decompresses the next blocks of a file while rows are loaded."""

from __future__ import annotations

from collections.abc import Iterator
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")

AHEAD: Final = 8
"""Blocks that are read before they are needed."""


class ReadAhead(Generic[Item]):
    """Iterates over what a thread reads. Use as a context manager: the thread ends with it.

    Parameters:
        items: the iterator that the thread uses; what it raises is raised here, after the items before.
        ahead: the most items that are read before they are needed.
    """

    def __init__(self, items: Iterator[Item], ahead: int = AHEAD) -> None:
        self._items = items
        self._room = Semaphore(ahead)
        self._read: SimpleQueue[Item | _End] = SimpleQueue()
        self._is_closed = False
        self._thread = Thread(target=self._read_all, name="read-ahead", daemon=True)
        self._thread.start()

    def __enter__(self) -> Iterator[Item]:
        return self._each()

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        self._room.release()
        self._thread.join()

    def _read_all(self) -> None:
        error: BaseException | None = None
        try:
            for item in self._items:
                self._read.put(item)
                self._room.acquire()
                if self._is_closed:
                    break
        except BaseException as raised:
            error = raised
        self._read.put(_End(error))

    def _each(self) -> Iterator[Item]:
        while True:
            item = self._read.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            self._room.release()
            yield item


class _End:
    """What follows the last item: the error that ended the reading, if any."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error
