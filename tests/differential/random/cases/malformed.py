"""Valid requests with changed, missing or additional bytes, in a frame of the right length."""

from __future__ import annotations

from typing import Any, Final

from tests.differential.ddl.system_rows import select
from tests.differential.random.cases.protocol import ASKED, DEFINITION, GOOD_BODIES
from tests.differential.random.request import Request
from tests.differential.random.values.draws import Draws, sequence
from tests.differential.random.values.packing import pack
from tests.iproto_client import REQUEST_TYPE, SYNC

_KINDS: Final = list(GOOD_BODIES)
_VALUES: Final[list[Any]] = [
    *([[1]], {"a": {"b": 1}}, "text", b"bin", 2**64 - 1, -(2**63), 1.5, None, True),
    *([["=", 1, 1]], [["+", "n", 1]], [[":", 1, 0, 1, "x"]], [["#", 1, 1]], [[]], [1, [2, [3]]]),
]
_BYTES: Final = [
    *(0x00, 0x01, 0x7F, 0x80, 0x81, 0x8F, 0x90, 0x91, 0x93, 0x9F, 0xA0, 0xA1, 0xBF, 0xC0, 0xC2, 0xC3),
    *(0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xCB, 0xCC, 0xCD, 0xCE, 0xCF, 0xD0, 0xD1, 0xD2, 0xD3),
    *(0xD4, 0xD8, 0xD9, 0xDA, 0xDB, 0xDC, 0xDD, 0xDE, 0xDF, 0xE0, 0xFF),
]


def case(draws: Draws) -> list[Request]:
    """Draw a space, malformed requests about it, and reads of its contents."""
    return [*DEFINITION, *sequence(draws, _request), Request.of(select(ASKED))]


def _request(draws: Draws) -> Request:
    kind = draws.pick(_KINDS)
    body = dict(GOOD_BODIES[kind])
    if body and draws.rarely(2):
        body[draws.pick(list(body))] = draws.pick(_VALUES)
    raw = bytearray(pack(body))
    for _ in range(draws.pick([1, 1, 2, 3])):
        _spoil(draws, raw)
    if draws.rarely(8):
        header = bytearray(pack({REQUEST_TYPE: kind, SYNC: 7}))
        # except the type: another group covers others
        header[draws.pick([0, 1, 3, 4])] = draws.pick(_BYTES)
        return Request(kind, bytes(raw), bytes(header))
    return Request(kind, bytes(raw))


def _spoil(draws: Draws, raw: bytearray) -> None:
    place = draws.below(len(raw) + 1)
    match draws.below(5):
        case 0:
            del raw[place:]
        case 1:
            raw[place : place + 1] = bytes((draws.pick(_BYTES),))
        case 2:
            raw[place:place] = bytes((draws.pick(_BYTES),))
        case 3:
            del raw[place : place + 1]
        case _:
            raw[place : place + 1] = draws.pick(
                [b"\xdd\xff\xff\xff\xff", b"\xc6\x7f\xff\xff\xff", b"\xdf\0\0\0\1"]
            )
