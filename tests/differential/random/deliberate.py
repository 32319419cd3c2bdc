"""Deliberate differences between our server and Tarantool 2.6.

After a request that only one of the servers has executed, the rest of the case is not compared: the states
differ.

Requests with these differences are excluded:

- Numbers in a longer form than they need as keys: Tarantool 2.6 compares some of them by their bytes.
- Decimals in a hash: it takes 1 and 1.0 for two keys there. Decimals beside doubles of more than 15 digits,
  which it rounds before it compares them.
- Execute together with other rights on a role: it gives the role or not by the order in which they were
  granted, until it is started again; here who may execute a role has it.
- A type above 255 of a change: it takes 8 bits of it here, all there, and changes nothing. Keys 0x50 … 0x53
  in the body of a change, which it half takes for 0x10 … 0x13.
- Values in more than 1000 others, which are refused here.
- What it reads memory for that is not its own; the groups say what.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

import msgpack

from tests.differential.ddl.system_rows import CLUSTER, FUNC, INDEX, PRIV, SCHEMA, SEQUENCE_DATA, SPACE, USER
from tests.differential.random.answer import Reply
from tests.differential.random.request import Request
from tests.iproto_client import AUTH

_SIGNED_POSITIVE: Final = re.compile(rb"[\xd0-\xd3][\x00-\x7f]")
_LONG_KEY: Final = re.compile(rb"(?:[\xcc\xd0]|[\xcd\xd1]\0|[\xce\xd2]\0{3}|[\xcf\xd3]\0{7})[\0-\x28]")
_EMPTY_TYPE: Final = re.compile(rb"\xa4type\xa0|[\x92\x93][\x00-\x7f]\xa0|\xa0[\x80-\x8f]")
"""In a part, in a format, or of an index, where the options follow."""

_OTHER_UUID: Final = "Space _cluster does not support updates of instance uuid"
_SAME_MEMBER: Final = "Duplicate key exists in unique index 'uuid' in space '_cluster'"
_SAME_SPACE: Final = "Duplicate key exists in unique index 'name' in space '_space'"
_ENGINE: Final = re.compile("Space engine '(vinyl|blackhole|service|sysview)' does not exist")
_UNFIT_ROWS: Final = frozenset({3, 23, 39})
"""Errors of a change of a definition that rows do not fit: same keys, wrong types, missing fields."""

_NULLABLE_PART: Final = b"\xabis_nullable\xc3"


class Deliberate(NamedTuple):
    """A deliberate difference.

    Attributes:
        reason: The reason for it.
        applies: Detects it in the request, our answer and theirs.
    """

    reason: str
    applies: Callable[[Request, Reply, Reply], bool]


DELIBERATE: Final[list[Deliberate]] = [
    Deliberate(
        "what this server does not have it refuses, and says so",
        lambda request, ours, theirs: ours.text.startswith("This server does not support "),
    ),
    Deliberate(
        "a UUID is a scalar, as it is from Tarantool 2.10 on",
        lambda request, ours, theirs: "scalar" in theirs.text and theirs.code in (18, 23, 24, 27),
    ),
    Deliberate(
        "a field of doubles takes a float of four bytes, as it does from Tarantool 3.0 on",
        lambda request, ours, theirs: theirs.code in (18, 23) and theirs.text.endswith("expected double"),
    ),
    Deliberate(
        "a number that is not negative may be packed as a signed one: reading cannot tell",
        lambda request, ours, theirs: (
            request.is_raw
            and theirs.code in (18, 20, 23)
            and _SIGNED_POSITIVE.search(request.packed(1)) is not None
        ),
    ),
    Deliberate(
        "an empty text is no name of a type, as from Tarantool 2.11 on: 2.6 takes it for part of 'num'",
        lambda request, ours, theirs: (
            request.space_id in (SPACE, INDEX) and _EMPTY_TYPE.search(request.packed(1)) is not None
        ),
    ),
    Deliberate(
        "a key of a header or body is known however its number is written; to look would cost every request",
        lambda request, ours, theirs: request.is_raw and _has_strange_key(request.packed(1)),
    ),
    Deliberate(
        "of a repeated key only the last value is looked at; to look at all would cost every request",
        lambda request, ours, theirs: request.is_raw and _has_repeated_key(request.packed(1)),
    ),
    Deliberate(
        "the version of the schema stays one that a Tarantool starts from",
        lambda request, ours, theirs: ours.code == 140 and not theirs.status,
    ),
    Deliberate(
        "two members do not have the same UUID in different letters: 2.6 takes one for the other",
        lambda request, ours, theirs: (
            request.space_id == CLUSTER and ours.text == _SAME_MEMBER and not theirs.status
        ),
    ),
    Deliberate(
        "two spaces never have one name, whatever indexes _space has: 2.6 forgets one, damages its memory",
        lambda request, ours, theirs: (
            request.space_id == SPACE and ours.text == _SAME_SPACE and not theirs.status
        ),
    ),
    Deliberate(
        "a primary key that was renamed is a primary key: 2.6 calls it UNIQUE until a snapshot is loaded",
        lambda request, ours, theirs: (
            ours.code == theirs.code == 170 and ours.text == theirs.text.replace("UNIQUE", "PRIMARY KEY", 1)
        ),
    ),
    Deliberate(
        "a UUID is written in full: 2.6 reads what it can of the last digits, and stores what was written",
        lambda request, ours, theirs: (
            request.space_id in (SCHEMA, CLUSTER)
            and ours.code == 64
            and (not theirs.status or theirs.text == _OTHER_UUID)
        ),
    ),
    Deliberate(
        "a word with a NUL in it is another word: 2.6 reads it up to there, and stores all of it",
        lambda request, ours, theirs: bool(ours.status) and not theirs.status and _has_nul(request.body),
    ),
    Deliberate(
        "the index of _sequence_data is what its row says: in 2.6 it stays a hash",
        lambda request, ours, theirs: request.space_id == SEQUENCE_DATA and theirs.code == 112,
    ),
    Deliberate(
        "what has been granted as SPACE does not go either: 2.6 looks for small letters, and does not start",
        lambda request, ours, theirs: ours.text.endswith(" has grants") and not theirs.status,
    ),
    Deliberate(
        "there is no other engine than memtx",
        lambda request, ours, theirs: (
            request.space_id == SPACE and ours.code == 57 and _ENGINE.match(ours.text) is not None
        ),
    ),
    Deliberate(
        "AUTH looks at the name of its method, as from Tarantool 2.11 on",
        lambda request, ours, theirs: (
            request.kind == AUTH
            and (ours.code == 249 or ours.text == "Invalid MsgPack - authentication request body")
            and theirs.text.endswith((" - authentication scramble", " - invalid scramble size"))
        ),
    ),
    Deliberate(
        "the index of _session_settings is one that memtx can have: 2.6 takes any, and does not use it",
        lambda request, ours, theirs: (
            request.space_id == INDEX
            and ours.code in (13, 14, 152)
            and "'_session_settings'" in ours.text
            and theirs.code in (0, 27)
        ),
    ),
    Deliberate(
        "a function's name is shown as it is: 2.6 shows what follows it in the row as well",
        lambda request, ours, theirs: (
            request.space_id == FUNC
            and ours.code == theirs.code == 50
            and theirs.text.startswith(ours.text.rpartition("': ")[0])
        ),
    ),
    Deliberate(
        "what a user has is found without an index as well: 2.6 lets users go whose things stay",
        lambda request, ours, theirs: request.space_id == USER and ours.code == 44 and not theirs.status,
    ),
    Deliberate(
        "all objects of a kind are called by its name: 2.6 reads its word behind the end of a table",
        lambda request, ours, theirs: (
            request.space_id == PRIV
            and ours.code == theirs.code == 42
            and " '' is denied for user " in ours.text
            and ours.text.partition(" '' ")[2] == theirs.text.partition(" '' ")[2]
        ),
    ),
    Deliberate(
        "AUTH tells nobody which users there are, as from Tarantool 2.11 on",
        lambda request, ours, theirs: (
            request.kind == AUTH
            and (ours.code == 47 or ours.text == "Invalid MsgPack - authentication request body")
            and theirs.code in (42, 45, 47)
        ),
    ),
    Deliberate(
        "rows are checked when a unique index gets fewer parts that may be nil; 2.6 keeps rows of one key",
        lambda request, ours, theirs: (
            request.space_id == INDEX
            and (ours.code, theirs.status) == (3, 0)
            and _NULLABLE_PART in request.packed(1)
        ),
    ),
    Deliberate(
        "an unknown type of index has no name: 2.6 shows what lies behind its table of names",
        lambda request, ours, theirs: (
            request.space_id == INDEX
            and ours.text == "(null) does not support nullable parts"
            and theirs.text.endswith(" does not support nullable parts")
        ),
    ),
    Deliberate(
        "which of several rows of a hash comes first and does not fit is its own affair",
        lambda request, ours, theirs: (
            request.unordered
            and request.space_id in (SPACE, INDEX)
            and _UNFIT_ROWS.issuperset((ours.code, theirs.code))
        ),
    ),
]


def reason_for(request: Request, ours: Reply, theirs: Reply) -> str | None:
    """Return the reason why two answers differ, if it is deliberate."""
    return next((each.reason for each in DELIBERATE if each.applies(request, ours, theirs)), None)


def _has_nul(value: object) -> bool:
    """Whether there is a text with a NUL in a value."""
    match value:
        case str():
            return "\0" in value
        case list():
            return any(map(_has_nul, value))
        case Mapping():
            return any(map(_has_nul, (*value.keys(), *value.values())))
    return False


def _has_strange_key(raw: bytes) -> bool:
    """Whether a key is a number that equals a known one but has another encoding."""
    keys = [key for of_one in _keys(raw) for key in of_one]
    return any(isinstance(key, bool | float) for key in keys) or _LONG_KEY.search(raw) is not None


def _has_repeated_key(raw: bytes) -> bool:
    for of_one in _keys(raw):
        numbers = [key for key in of_one if isinstance(key, int)]
        if len(set(numbers)) < len(numbers):
            return True
    return False


def _keys(raw: bytes) -> list[list[object]]:
    """Return the keys of the header and of the body, as far as they can be decoded."""
    unpacker = msgpack.Unpacker(
        strict_map_key=False, unicode_errors="surrogateescape", object_pairs_hook=lambda pairs: pairs
    )
    unpacker.feed(raw)
    keys: list[list[object]] = []
    with suppress(ValueError, TypeError, msgpack.UnpackException):
        for _ in range(2):
            keys.append([key for key, _ in unpacker.unpack()])  # noqa: PERF401  # the keys before a fault count
    return keys
