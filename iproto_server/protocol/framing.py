"""From a stream of bytes to frames: a frame is preceded by its length, an unsigned integer of MessagePack."""

from __future__ import annotations

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import FrameDecoder, Frames, set_hook

__all__ = ["FrameDecoder", "FrameTooLargeError", "Frames", "FramingError"]


class FramingError(BoxError):
    """The stream has no valid length where one should be, so nothing after this can be understood.

    Parameters:
        reason: What is wrong, as Tarantool words it.

    Attributes:
        reason: What is wrong.
        frames: The frames before the fault, which are still to be answered, if `feed` or `more` raises this.
    """

    frames: list[bytes]

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.INVALID_MSGPACK, reason)
        self.reason = reason
        self.frames = []


class FrameTooLargeError(FramingError):
    """A frame is announced that is larger than allowed.

    Parameters:
        reason: As for `FramingError`.
        size: The announced size in bytes.

    Attributes:
        size: The announced size in bytes.
    """

    def __init__(self, reason: str, size: int) -> None:
        super().__init__(reason)
        self.size = size


def _framing_error(reason: str, size: int | None = None) -> FramingError:
    return FramingError(reason) if size is None else FrameTooLargeError(reason, size)


set_hook("framing_error", _framing_error)
