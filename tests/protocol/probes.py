"""Valid and invalid frames, with the response of a real Tarantool 2.6 to each.

Every row was asked of the real one; `test_probes_real.py` asks again. The few rows where this server differs
on purpose, or goes beyond 2.6, are at the end.
"""

from collections.abc import Iterator
from typing import NamedTuple

from iproto_server.codec import msgpack as codec
from iproto_server.errors import ErrorCode
from iproto_server.protocol import Key, RequestType

SYNC = 7
SPACE_ID = 512
"""A space with a primary TREE index over its first field and a row `[1, 1, 'a']`."""

HEADER_FAULT = "Invalid MsgPack - packet header"
BODY_FAULT = "Invalid MsgPack - packet body"


class Probe(NamedTuple):
    """One frame and its result.

    Attributes:
        name: what is special about it.
        frame: header and body.
        sync: the number that the answer carries.
        code: of the error that decoding ends in, None if the frame is a request.
        text: of that error.
    """

    name: str
    frame: bytes
    sync: int = SYNC
    code: int | None = None
    text: str = ""


def header(number: int) -> bytes:
    """Pack the header of a request of a type."""
    return codec.pack({Key.REQUEST_TYPE: number, Key.SYNC: SYNC})


GOOD_BODIES: dict[RequestType, dict[object, object]] = {
    RequestType.SELECT: {0x10: SPACE_ID, 0x11: 0, 0x12: 10, 0x13: 0, 0x14: 0, 0x20: [1]},
    RequestType.INSERT: {0x10: SPACE_ID, 0x21: [1, 1]},
    RequestType.REPLACE: {0x10: SPACE_ID, 0x21: [1, 1, "a"]},
    RequestType.UPDATE: {0x10: SPACE_ID, 0x20: [1], 0x21: []},
    RequestType.DELETE: {0x10: SPACE_ID, 0x20: [777]},
    RequestType.UPSERT: {0x10: SPACE_ID, 0x28: [], 0x21: [1, 1]},
    RequestType.CALL: {0x22: "box.info.status", 0x21: []},
    RequestType.CALL_16: {0x22: "box.info.status", 0x21: []},
    RequestType.EVAL: {0x27: "return", 0x21: []},
    RequestType.AUTH: {0x23: "guest", 0x21: []},
    RequestType.EXECUTE: {0x40: "SELECT 1", 0x41: []},
    RequestType.PREPARE: {0x40: "SELECT 1"},
}
"""A body for each type that has one."""

REQUIRED: dict[RequestType, dict[int, str]] = {
    RequestType.SELECT: {0x10: "space id", 0x12: "limit", 0x20: "key"},
    RequestType.INSERT: {0x10: "space id", 0x21: "tuple"},
    RequestType.REPLACE: {0x10: "space id", 0x21: "tuple"},
    RequestType.UPDATE: {0x10: "space id", 0x20: "key", 0x21: "tuple"},
    RequestType.DELETE: {0x10: "space id", 0x20: "key"},
    RequestType.UPSERT: {0x10: "space id", 0x21: "tuple", 0x28: "operations"},
    RequestType.CALL: {0x22: "function name"},
    RequestType.CALL_16: {0x22: "function name"},
    RequestType.EVAL: {0x27: "expression"},
    RequestType.AUTH: {0x23: "user name", 0x21: "tuple"},
    RequestType.EXECUTE: {0x40: "SQL text or stmt id"},
    RequestType.PREPARE: {0x40: "SQL text or stmt id"},
}
"""The required keys of each type, by their names in errors; the first missing one is reported."""

ROW_TYPES = (
    RequestType.SELECT,
    RequestType.INSERT,
    RequestType.REPLACE,
    RequestType.UPDATE,
    RequestType.DELETE,
    RequestType.UPSERT,
)
_ROW_KINDS: dict[int, type] = {
    **dict.fromkeys(range(0x10, 0x16), int),
    0x20: list,
    0x21: list,
    0x28: list,
    0x2A: dict,
}
_CALL_KINDS: dict[int, type] = {0x22: str, 0x27: str, 0x21: list}
CHECKED_KEYS: dict[RequestType, dict[int, type]] = {
    **dict.fromkeys(ROW_TYPES, _ROW_KINDS),
    RequestType.CALL: _CALL_KINDS,
    RequestType.CALL_16: _CALL_KINDS,
    RequestType.EVAL: _CALL_KINDS,
    RequestType.AUTH: {0x23: str, 0x21: list},
}
"""The keys whose values must have a type, even if the request ignores them."""

WRONG_VALUES: tuple[object, ...] = (None, -1, "x", 1.5, [], {}, True, 7, b"x")


def header_probes() -> Iterator[Probe]:
    """Faults of headers."""
    fault = ErrorCode.INVALID_MSGPACK, HEADER_FAULT
    yield Probe("an array for a header", b"\x90", 0, *fault)
    yield Probe("nil for a header", b"\xc0", 0, *fault)
    yield Probe("a header cut short", b"\x82\x00", 0, *fault)
    yield Probe("a byte that means nothing", b"\xc1", 0, *fault)
    yield Probe("a text for a key", codec.pack({"a": 1}), 0, *fault)
    yield Probe("a negative key", bytes.fromhex("8300400107ff01"), SYNC, *fault)
    yield Probe("a text for the type, after the sync", codec.pack({1: SYNC, 0: "x"}), SYNC, *fault)
    yield Probe("a text for the type, before the sync", bytes.fromhex("8200a1780107"), 0, *fault)
    yield Probe("a negative sync", bytes.fromhex("82004001ff"), 0, *fault)
    yield Probe("a text for the sync", bytes.fromhex("82004001a178"), 0, *fault)
    yield Probe("a double for the sync", bytes.fromhex("82004001cb3ff0000000000000"), 0, *fault)
    yield Probe("a fault before the sync", bytes.fromhex("8277010107"), 0, *fault)
    yield Probe("a fault between sync and type", bytes.fromhex("83010777010040"), SYNC, *fault)
    for key in (0x20, 0x22, 0x2B, 0x2C, 0x30, 0x50, 0x52, 0x53, 0x5E, 0x77, 0x7F):
        yield Probe(f"a number for key {key:#x}", bytes((0x83, 0, 64, 1, SYNC, key, 0)), SYNC, *fault)
    yield Probe("an integer for a timestamp", bytes.fromhex("83004001070401"), SYNC, *fault)
    yield Probe("a float for a timestamp", bytes.fromhex("830040010704ca3f800000"), SYNC, *fault)
    yield Probe("a key above all", bytes.fromhex("8300400107cc8001"), SYNC, *fault)

    yield Probe("no sync", codec.pack({0: 64}), 0)
    yield Probe("the largest sync", codec.pack({0: 64, 1: 2**64 - 1}), 2**64 - 1)
    yield Probe("two syncs", bytes.fromhex("83004001070108"), 8)
    yield Probe("a double for a timestamp", bytes.fromhex("830040010704cb3ff0000000000000"))
    yield Probe("an array for key 0x20", bytes.fromhex("83004001072090"))
    yield Probe("nil for key 0x30", bytes.fromhex("830040010730c0"))
    yield Probe("a key in a longer form", bytes.fromhex("8300400107cc0601"))
    yield Probe("a type in a longer form", bytes.fromhex("8200cd00400107"))
    yield Probe("a type of which only 8 bits count", bytes.fromhex("8200cf00000001000000400107"))
    yield Probe("a schema version of which 32 bits count", codec.pack({0: 64, 1: SYNC, 5: 2**32}))
    for key in (2, 3, 6, 7, 8, 9, 10, 11, 12, 15, 0x10, 0x15, 0x1F):
        yield Probe(f"key {key:#x}, which has no meaning here", bytes((0x83, 0, 64, 1, SYNC, key, 0)))


def body_probes() -> Iterator[Probe]:
    """Faults of bodies in general."""
    fault = SYNC, ErrorCode.INVALID_MSGPACK, BODY_FAULT
    ping = header(RequestType.PING)
    yield Probe("PING without a body", ping)
    yield Probe("PING with nil", ping + b"\xc0")
    yield Probe("PING with a text", ping + b"\xa1x")
    yield Probe("PING with a body cut short", ping + b"\x81\x10", *fault)
    yield Probe("PING with two bodies", ping + b"\x80\x80", *fault)
    yield Probe("NOP with a body", header(RequestType.NOP) + b"\x80", *fault)
    for number, good in GOOD_BODIES.items():
        name = number.name
        start = header(number)
        packed = codec.pack(good)
        yield Probe(f"{name}", start + packed)
        for what, body in {"an array": b"\x90", "nil": b"\xc0", "half a body": b"\x81\x10"}.items():
            yield Probe(f"{name} with {what}", start + body, *fault)
        yield Probe(f"{name} with a byte after the body", start + packed + b"\xc0", *fault)
        if number in ROW_TYPES:
            first_missing = ErrorCode.MISSING_REQUEST_FIELD, "Missing mandatory field 'space id' in request"
        else:
            first_missing = ErrorCode.INVALID_MSGPACK, "Invalid MsgPack - missing request body"
        yield Probe(f"{name} without a body", start, SYNC, *first_missing)


def key_probes() -> Iterator[Probe]:
    """Faults of keys in a body."""
    for number, names in REQUIRED.items():
        good = GOOD_BODIES[number]
        for key, called in names.items():
            body = {other: value for other, value in good.items() if other != key}
            text = f"Missing mandatory field '{called}' in request"
            yield Probe(
                f"{number.name} without {called}",
                header(number) + codec.pack(body),
                SYNC,
                ErrorCode.MISSING_REQUEST_FIELD,
                text,
            )
        empty = f"Missing mandatory field '{next(iter(names.values()))}' in request"
        for what, packed in {"an empty body": b"\x80", "an unknown key": b"\x81\x77\x01"}.items():
            yield Probe(
                f"{number.name} with {what}",
                header(number) + packed,
                SYNC,
                ErrorCode.MISSING_REQUEST_FIELD,
                empty,
            )
    for number, kinds in CHECKED_KEYS.items():
        for key, kind in kinds.items():
            for value in WRONG_VALUES:
                if type(value) is kind and value != -1:
                    continue
                body = {**GOOD_BODIES[number], key: value}
                yield Probe(
                    f"{number.name} with {value!r} for {key:#x}",
                    header(number) + codec.pack(body),
                    SYNC,
                    ErrorCode.INVALID_MSGPACK,
                    BODY_FAULT,
                )
    for number in (*ROW_TYPES, RequestType.EXECUTE, RequestType.PREPARE):
        for what, other in {"a text": "a", "a negative number": -1, "an unknown key": 0x77}.items():
            body = {**GOOD_BODIES[number], other: 1}
            yield Probe(f"{number.name} with {what} for a key", header(number) + codec.pack(body))
    for number in ROW_TYPES:
        # One byte of a key counts, so a longer form of it is the key of nothing.
        packed = codec.pack(GOOD_BODIES[number])
        for what, pair in {"a text": b"\xcc\x10\xa1x", "another number": b"\xcd\x00\x10\x01"}.items():
            more = bytes((packed[0] + 1,)) + packed[1:] + pair
            yield Probe(f"{number.name} with {what} for the space id in a longer form", header(number) + more)
        longer = bytes((packed[0],)) + b"\xcc" + packed[1:]
        yield Probe(
            f"{number.name} with the key of the space id in a longer form",
            header(number) + longer,
            SYNC,
            ErrorCode.MISSING_REQUEST_FIELD,
            "Missing mandatory field 'space id' in request",
        )
    for number in (RequestType.CALL, RequestType.CALL_16, RequestType.EVAL, RequestType.AUTH):
        for other in ("a", -1):
            body = {**GOOD_BODIES[number], other: 1}
            yield Probe(
                f"{number.name} with {other!r} for a key",
                header(number) + codec.pack(body),
                SYNC,
                ErrorCode.INVALID_MSGPACK,
                BODY_FAULT,
            )
        body = {**GOOD_BODIES[number], 0x10: "x", 0x77: 1, 200: 1}
        yield Probe(f"{number.name} with keys that are not its own", header(number) + codec.pack(body))
    for number in (RequestType.CALL, RequestType.EVAL):
        body = {key: value for key, value in GOOD_BODIES[number].items() if key != Key.TUPLE}
        yield Probe(f"{number.name} without arguments", header(number) + codec.pack(body))
    for number in (RequestType.EXECUTE, RequestType.PREPARE):
        yield Probe(
            f"{number.name} of a text and of a statement",
            header(number) + codec.pack({0x40: "SELECT 1", 0x43: 1}),
            SYNC,
            ErrorCode.INVALID_MSGPACK,
            "Invalid MsgPack - SQL text and statement id are incompatible options in one request: choose one",
        )


PROBES = (*header_probes(), *body_probes(), *key_probes())

UNNAMED: tuple[object, ...] = (1, None, [], b"x")

OUR_PROBES = (
    # Tarantool does not respond to this at all.
    Probe("an empty frame", b"", 0, ErrorCode.INVALID_MSGPACK, HEADER_FAULT),
    # Tarantool interprets the byte as a value.
    Probe(
        "PING with a byte that means nothing",
        header(64) + b"\xc1",
        SYNC,
        ErrorCode.INVALID_MSGPACK,
        BODY_FAULT,
    ),
    # 2.6 does not know NOP from a client; nor ID, nor names in place of numbers.
    Probe("NOP", header(RequestType.NOP)),
    Probe("ID", header(RequestType.ID) + codec.pack({0x54: 5, 0x55: [0, 1, 99], 0x5B: "chap-sha1", 0x77: 1})),
    Probe("ID with nothing to say", header(RequestType.ID) + b"\x80"),
    *(
        Probe(f"ID with {what}", header(RequestType.ID) + body, SYNC, 20, "Invalid MsgPack - request body")
        for what, body in {
            "no body": b"",
            "an array": b"\x90",
            "a text for the version": codec.pack({0x54: "5"}),
            "a number for the features": codec.pack({0x55: 1}),
            "a text among the features": codec.pack({0x55: ["x"]}),
            "a negative feature": codec.pack({0x55: [-1]}),
            "a number for the method": codec.pack({0x5B: 1}),
            "a text for a key": codec.pack({"a": 1}),
        }.items()
    ),
    *(
        Probe(
            f"{number.name} with {wrong!r} for {key.name}",
            header(number) + codec.pack({**GOOD_BODIES[number], key: wrong}),
            SYNC,
            ErrorCode.INVALID_MSGPACK,
            BODY_FAULT,
        )
        for number in ROW_TYPES
        for key in (Key.SPACE_NAME, Key.INDEX_NAME)
        for wrong in UNNAMED
    ),
    Probe(
        "SELECT by names",
        header(RequestType.SELECT) + codec.pack({0x5E: "t", 0x5F: "pk", 0x12: 1, 0x20: []}),
    ),
    Probe(
        "SELECT by names without a limit",
        header(RequestType.SELECT) + codec.pack({0x5E: "t", 0x20: []}),
        SYNC,
        ErrorCode.MISSING_REQUEST_FIELD,
        "Missing mandatory field 'limit' in request",
    ),
)
