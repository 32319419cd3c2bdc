"""Requests that have arrived and wait to be carried out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Protocol

from iproto_server.native import twin


class FrameSink(Protocol):
    """The receiver of a decoder's frames."""

    def append(self, frame: bytes, /) -> object:
        """Put a frame behind the others."""


@twin
class Frames:
    """A queue of frames: the header and body of each request, without the length before them.

    The compiled twin keeps the bytes of many frames in one piece, as they have arrived.

    Args:
        frames: the first frames.
    """

    __slots__ = ("_frames",)

    def __init__(self, frames: Iterable[bytes] = (), /) -> None:
        self._frames = deque(frames)

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[bytes]:
        return iter(list(self._frames))

    def append(self, frame: bytes, /) -> None:
        """Put a frame behind the others."""
        self._frames.append(frame)

    def appendleft(self, frame: bytes, /) -> None:
        """Put a frame before the others."""
        self._frames.appendleft(frame)

    def extend(self, frames: Iterable[bytes], /) -> None:
        """Put several frames behind the others."""
        self._frames.extend(frames)

    def popleft(self) -> bytes:
        """Take the first frame. Raises IndexError if there is none."""
        return self._frames.popleft()
