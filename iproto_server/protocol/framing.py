"""From a stream of bytes to frames: the stream is MessagePack integers, each followed by that many bytes.

The decoder holds only what has arrived of the last frame, in one buffer that grows by amortised doubling: a
frame that arrives in a thousand pieces is copied twice, and a frame that is announced but never sent costs
nothing. Of a large chunk the frames are cut out a part at a time, when somebody asks for `more` of them.
"""

import sys
from typing import Final

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native import twin
from iproto_server.protocol.frames import FrameSink

_U32: Final = 0xCE
_WIDTHS: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}


class FramingError(BoxError):
    """The stream has no length where one should be, so nothing after this can be understood.

    Attributes:
        reason: what is wrong.
        frames: the frames that were complete before the fault, unless somebody else was given them; they
            deserve their answers.
    """

    frames: list[bytes]

    def __init__(self, reason: str) -> None:
        """Create the error that the client is told before its connection closes.

        Args:
            reason: what is wrong, as Tarantool words it.
        """
        super().__init__(ErrorCode.INVALID_MSGPACK, reason)
        self.reason = reason
        self.frames = []


class FrameTooLargeError(FramingError):
    """A frame is announced that is larger than it may be.

    Attributes:
        size: how large, in bytes.
    """

    def __init__(self, reason: str, size: int) -> None:
        """Create the error.

        Args:
            reason: as of :class:`FramingError`.
            size: how large the frame is said to be.
        """
        super().__init__(reason)
        self.size = size


@twin
def _cut_frames(data: bytes, position: int, stop: int, max_frame: int, frames: FrameSink) -> int:
    """Cut out the whole frames in front that have a length of the usual kind.

    Args:
        data: what has arrived.
        position: where the first frame begins.
        stop: frames that begin from here on are left.
        max_frame: as of the decoder.
        frames: is given the frames.

    Returns:
        Where the first frame begins that was left: the decoder's own loop goes on there, in Python with all.
    """
    return position


class FrameDecoder:
    """Cuts one connection's incoming bytes into frames, wherever the network happened to split them."""

    __slots__ = ("_at_once", "_buffer", "_largest", "_max_frame", "_missing", "_position", "_rest")

    def __init__(self, max_frame: int, at_once: int = sys.maxsize) -> None:
        """Create a decoder for one connection.

        Args:
            max_frame: the most bytes that a frame may have, its length's own bytes not counted.
            at_once: frames that begin within so many bytes are cut out, then the others are left to `more`.
        """
        self._max_frame = max_frame
        self._largest = max_frame
        self._at_once = at_once
        # What has not been looked at yet, and from where on.
        self._rest = b""
        self._position = 0
        self._buffer = bytearray()
        # How many bytes the buffer lacks, at least, until it is worth looking at again.
        self._missing = 0

    @property
    def buffered(self) -> int:
        """How many bytes of an incomplete frame, and of those that nobody has asked for yet, are held."""
        return len(self._buffer) + len(self._rest)

    @property
    def has_part(self) -> bool:
        """Whether there is a part of a frame of which more has to come."""
        return bool(self._buffer)

    def limit_to(self, max_frame: int) -> None:
        """Take frames up to another size from now on, if that is below the maximum.

        A larger one that is not above the maximum is left to `more`, which refuses it: the limit may be
        another one when the frames before it have been looked at.
        """
        self._max_frame = min(max_frame, self._largest)

    def clear(self) -> None:
        """Forget what is held."""
        self._rest = b""
        self._buffer = bytearray()
        self._missing = 0

    @property
    def has_more(self) -> bool:
        """Whether there is something that `more` has to look at."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        """Take what arrived and return the frames that it completes.

        Args:
            data: the next bytes of the stream, any number of them.

        Returns:
            The complete frames in order, each header and body without the length before them. There may be
            `more`; while there is, nothing is returned here.

        Raises:
            FramingError: what should be a length is none, or is above the maximum. The decoder is of no use
                after that.
        """
        frames: list[bytes] = []
        try:
            self.feed_to(frames, data)
        except FramingError as error:
            error.frames = frames
            raise
        return frames

    def feed_to(self, frames: FrameSink, data: bytes) -> None:
        """Take what arrived and put the frames that it completes into ``frames``.

        Raises:
            FramingError: as of `feed`, when the frames before the fault are put there.
        """
        if self._rest:
            self._rest = self._rest[self._position :] + data
            self._position = 0
            return
        buffer = self._buffer
        if buffer:
            buffer += data
            self._missing -= len(data)
            if self._missing > 0:
                return
            data = bytes(buffer)
            self._buffer = bytearray()
        self._cut(data, 0, frames)

    def more(self) -> list[bytes]:
        """Return the next frames of what was fed.

        Raises:
            FramingError: as of `feed`; also for a frame that is above the limit.
        """
        frames: list[bytes] = []
        try:
            self.more_to(frames)
        except FramingError as error:
            error.frames = frames
            raise
        return frames

    def more_to(self, frames: FrameSink) -> None:
        """Put the next frames of what was fed into ``frames``.

        Raises:
            FramingError: as of `more`.
        """
        data, self._rest = self._rest, b""
        position = self._position
        self._cut(data, position, frames)
        if self._rest and self._position == position:
            self._rest = b""
            raise self._too_large(self._length_at(data, position))

    def _length_at(self, data: bytes, position: int) -> int:
        """The length of the frame that begins at a position; it is there."""
        width = _WIDTHS.get(data[position], 0)
        return int.from_bytes(data[position + 1 : position + 1 + width], "big") if width else data[position]

    @staticmethod
    def _too_large(size: int) -> FrameTooLargeError:
        return FrameTooLargeError(f"too big packet size in the header: {size}", size)

    def _cut(self, data: bytes, position: int, frames: FrameSink) -> None:
        size = len(data)
        stop = min(position + self._at_once, size)
        max_frame = self._max_frame
        position = _cut_frames(data, position, stop, max_frame, frames)
        while position < stop:
            first = data[position]
            if first == _U32:  # What every known client sends, whatever the length.
                start = position + 5
                if start > size:
                    self._keep(data, position, start - size)
                    return
                length = int.from_bytes(data[position + 1 : start], "big")
            elif first < 0x80:
                start = position + 1
                length = first
            else:
                width = _WIDTHS.get(first)
                if width is None:
                    raise FramingError("packet length")
                start = position + 1 + width
                if start > size:
                    self._keep(data, position, start - size)
                    return
                length = int.from_bytes(data[position + 1 : start], "big")
            if length > max_frame:
                if length > self._largest:
                    raise self._too_large(length)
                break
            end = start + length
            if end > size:
                self._keep(data, position, end - size)
                return
            frames.append(data[start:end])
            position = end
        if position < size:
            self._rest = data
            self._position = position

    def _keep(self, data: bytes, position: int, missing: int) -> None:
        """Put the bytes from ``position`` on aside until ``missing`` more have come."""
        self._buffer += memoryview(data)[position:]
        self._missing = missing
