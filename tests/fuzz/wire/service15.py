"""A server without sockets for clients of Tarantool 1.5: one answer to each request, and no side effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from iproto_server.server.tarantool15.connection import Connection15
from tests.fuzz.draw import Draw
from tests.fuzz.target import Target
from tests.fuzz.wire.frames15 import HEADER, SEEDS
from tests.fuzz.wire.service import MAX_FRAME, subject
from tests.protocol.tarantool15.box15_client import (
    CALL,
    DELETE,
    INSERT,
    PING,
    SELECT,
    UPDATE,
    Answer15,
    answer_of,
    call_body,
    delete_body,
    frame,
    insert_body,
    operation,
    select_body,
    splice,
    u32,
    u64,
    update_body,
)

SPACE: Final = 512
_KINDS: Final = (INSERT, SELECT, UPDATE, DELETE, CALL, PING)
_SPACES: Final = (SPACE, SPACE, SPACE, SPACE + 1, 280, 0, 2**32 - 1)
_FIELDS: Final = (
    *(u32(0), u32(1), u32(2), u64(1), u64(2**64 - 1), b"", b"nil", b"R", b"T", b"\xff", b"text"),
    *(splice(0, 1, b"x"), splice(-1, -1, b""), b"\x93\1\2\3", b"0.01", b"x" * 200),
)
_NUMBERS: Final = (0, 1, 2, 3, 2**31, 2**32 - 1)
_NAMES: Final = (
    *(b"queue.put", b"queue.take", b"queue.ack", b"queue.release", b"queue.stats", b"async.echo", b"echo"),
    *(
        b"box.space.jobs:select",
        b"box.space.jobs:replace",
        b"box.info",
        b"box.stat",
        b"",
        b"nothing",
        b"\xff",
    ),
    *(b"box.space.jobs.index.status:select", b"box.space._space:select", b"box.begin", b"box.slab.info"),
)


def draw_field(draw: Draw) -> bytes:
    """Draw a field."""
    number = draw.byte()
    return _FIELDS[number % len(_FIELDS)] if number < 0xE0 else draw.chunk()


def draw_fields(draw: Draw, most: int) -> list[bytes]:
    """Draw some fields."""
    return [draw_field(draw) for _ in range(draw.byte() % (most + 1))]


def draw_operation(draw: Draw) -> bytes:
    """Draw an operation of an UPDATE."""
    return operation(draw.pick(_NUMBERS), draw.byte() % 11, draw_field(draw))


def draw_frame(draw: Draw) -> bytes:
    """Draw a request, valid or not."""
    how = draw.byte()
    kind = draw.pick(_KINDS)
    space = draw.pick(_SPACES)
    flags = how & 7
    if kind == INSERT:
        body = insert_body(space, u32(draw.byte() % 4), b"RT"[how & 1 :], *draw_fields(draw, 3), flags=flags)
    elif kind == SELECT:
        keys = [draw_fields(draw, 2) for _ in range(draw.byte() % 3)]
        numbers = [draw.pick(_NUMBERS) for _ in range(2)]
        body = select_body(space, *keys, index=how & 3, offset=numbers[0], limit=numbers[1])
    elif kind == UPDATE:
        operations = [draw_operation(draw) for _ in range(draw.byte() % 4)]
        body = update_body(space, [u32(draw.byte() % 4)], *operations, flags=flags)
    elif kind == DELETE:
        body = delete_body(space, u32(draw.byte() % 4), flags=flags)
    elif kind == CALL:
        body = call_body(draw.pick(_NAMES), *draw_fields(draw, 3))
    else:
        body = b""
    if how & 0x80:
        body = body[: draw.byte()]
    return frame(kind if how & 0x40 == 0 else draw.byte(), body, draw.byte())


def requests_of(stream: bytes) -> tuple[list[bytes], bool]:
    """Return the requests of a stream, and whether an oversized one follows."""
    frames: list[bytes] = []
    while len(stream) >= HEADER:
        size = int.from_bytes(stream[4:8], "little")
        if size > MAX_FRAME:
            return frames, True
        if len(stream) < HEADER + size:
            break
        frames.append(stream[: HEADER + size])
        stream = stream[HEADER + size :]
    return frames, False


def answers(sent: bytes) -> Iterator[Answer15]:
    """Return all answers."""
    while sent:
        size = HEADER + int.from_bytes(sent[4:8], "little")
        yield answer_of(sent[:size])
        sent = sent[size:]


def whose(request: bytes) -> tuple[int, int]:
    """Return the type and the number of a request."""
    return int.from_bytes(request[:4], "little"), int.from_bytes(request[8:12], "little")


def check(data: bytes) -> None:
    draw = Draw(data)
    how = draw.byte()
    if how & 1:
        stream = draw.rest()
    else:
        frames: list[bytes] = []
        while not draw.is_used_up and len(frames) < 30:
            frames.append(draw_frame(draw))
        stream = b"".join(frames)
    requests, _ = requests_of(stream)
    middle = len(stream) * (how >> 1) // 128
    target = subject()
    target.errors.listen()
    pieces = [stream[:middle], stream[middle:]]
    sent, in_flight = target.loop.run_until_complete(target.serve(pieces, Connection15))
    assert not target.errors.seen, [record.getMessage() for record in target.errors.seen]
    asked = Counter(map(whose, requests))
    answered = Counter((answer.kind, answer.request_id) for answer in answers(sent))
    assert sum(asked.values()) - in_flight == sum(answered.values())
    assert answered <= asked
    target.clean()


TARGET: Final = Target(
    check,
    [
        *(b"\1" + each for each in SEEDS),
        b"\1" + b"".join(SEEDS),
        *(bytes((0, 1, number, 0, 1, 2, 3, 4, 5, 6)) for number in range(len(_KINDS))),
        *(bytes((0, 0, 4, 0, number, 2, 1, 9)) for number in range(len(_NAMES))),
        *(bytes((0, 3, 0, 0, 1, 2, 7, 8, 0, 1, 2, 0, 1, 1, 3, code, 1, 5)) for code in range(11)),
    ],
    memory=64 << 20,
)
