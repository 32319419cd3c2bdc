"""Splits a stream of bytes into requests: a header of twelve bytes, which contains the length, and a body."""

import sys

from iproto_server.protocol.frames import FrameSink
from iproto_server.protocol.framing import FrameDecoder, FrameTooLargeError
from iproto_server.protocol.tarantool15.constants import BODY_MAX, HEADER_SIZE


class FrameDecoder15(FrameDecoder):
    """Splits the incoming bytes of a connection into requests, header and body together."""

    __slots__ = ()

    def __init__(self, max_body: int, at_once: int = sys.maxsize) -> None:
        """Create a decoder for one connection.

        Args:
            max_body: the greatest length of a body, in bytes.
            at_once: as for :class:`FrameDecoder`.
        """
        super().__init__(min(max_body, BODY_MAX), at_once)

    def _length_at(self, data: bytes, position: int) -> int:
        return int.from_bytes(data[position + 4 : position + 8], "little")

    @staticmethod
    def _too_large(size: int) -> FrameTooLargeError:
        return FrameTooLargeError("received package is too big", size)

    def _cut(self, data: bytes, position: int, frames: FrameSink) -> None:
        size = len(data)
        stop = min(position + self._at_once, size)
        while position < stop:
            body = position + HEADER_SIZE
            if body > size:
                self._keep(data, position, body - size)
                return
            length = int.from_bytes(data[position + 4 : position + 8], "little")
            if length > self._max_frame:
                if length > self._largest:
                    raise self._too_large(length)
                break
            end = body + length
            if end > size:
                self._keep(data, position, end - size)
                return
            frames.append(data[position:end])
            position = end
        if position < size:
            self._rest = data
            self._position = position
