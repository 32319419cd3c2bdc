"""Frames in a stream of random pieces: the same as in the whole stream, which is split independently."""

from __future__ import annotations

from typing import Final

from iproto_server.protocol.framing import FrameDecoder, FramingError
from tests.fuzz.draw import Draw
from tests.fuzz.target import Target

MAX_FRAME: Final = 300
_WIDTHS: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}


def frames_of(stream: bytes) -> tuple[list[bytes], str | None, int]:
    """Return the frames of a stream, the error after them, and the size of an incomplete last frame."""
    frames: list[bytes] = []
    position = 0
    while position < len(stream):
        first = stream[position]
        width = 0 if first < 0x80 else _WIDTHS.get(first)
        if width is None:
            return frames, "packet length", 0
        start = position + 1 + width
        if start > len(stream):
            break
        length = int.from_bytes(stream[position + 1 : start], "big") if width else first
        if length > MAX_FRAME:
            return frames, f"too big packet size in the header: {length}", 0
        if start + length > len(stream):
            break
        frames.append(stream[start : start + length])
        position = start + length
    return frames, None, len(stream) - position


def check(data: bytes) -> None:
    draw = Draw(data)
    cuts = draw.chunk()
    stream = draw.rest()
    expected, fault, left = frames_of(stream)
    decoder = FrameDecoder(MAX_FRAME)
    frames: list[bytes] = []
    found: str | None = None
    position = 0
    number = 0
    while position < len(stream) and found is None:
        size = cuts[number % len(cuts)] if cuts else len(stream)
        number += 1
        try:
            frames += decoder.feed(stream[position : position + max(size, 1)])
        except FramingError as error:
            frames += error.frames
            found = error.message
        position += max(size, 1)
        assert decoder.buffered <= MAX_FRAME + 9 + 255
    assert frames == expected
    assert found == (None if fault is None else f"Invalid MsgPack - {fault}")
    assert fault is not None or decoder.buffered == left


def _stream(*frames: bytes) -> bytes:
    return b"".join(b"\xce" + len(frame).to_bytes(4, "big") + frame for frame in frames)


TARGET: Final = Target(
    check,
    [
        b"\0" + _stream(b"\x82\0\x40\1\1", b"", b"x" * 70),
        b"\2\1\3" + _stream(b"\x82\0\x40\1\1", b"x" * 300),
        b"\1\5" + b"\3abc\xcc\3abc\xcd\0\3abc\xcf" + bytes(7) + b"\3abc\0\0\0",
        b"\1\1" + b"\2ab\xcd\1\x2d" + b"x" * 301,
        b"\0\1x\xc1",
        b"\0\xce\0\0",
    ],
)
