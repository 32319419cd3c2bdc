"""IPROTO, and calls of the tutorial's queue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgpack

from bench.client.connection import Connection
from bench.client.iproto_frames import LENGTH_SIZE, call_frame, request_frame
from bench.client.requests import Requests
from bench.lib.process import Address
from bench.native.load import Framing

_SELECT, _INSERT, _REPLACE, _UPDATE, _DELETE, _PING = 1, 2, 3, 4, 5, 64
_SPACE_ID, _INDEX_ID, _LIMIT = 0x10, 0x11, 0x12
_OFFSET, _ITERATOR, _KEY, _TUPLE, _DATA, _ERROR = 0x13, 0x14, 0x20, 0x21, 0x30, 0x31
_ID: Final = re.compile(rb"\xa2id(\xcf.{8})", re.DOTALL)
_OK: Final = re.compile(rb"\xce.{4}\x83\x00\xce\x00{4}\x01", re.DOTALL)
"""The length of an answer and the beginning of its header, up to the return code 0."""


@dataclass(frozen=True, slots=True)
class Iproto:
    """Tarantool's binary protocol. Requests have no sync: a connection only counts answers."""

    greeting = 128
    framing = Framing.IPROTO

    def pings(self, count: int) -> Requests:
        """PING."""
        return Requests.alike(request_frame(_PING, {}), count)

    def puts(self, payloads: Sequence[bytes], delay: int = 0) -> Requests:
        """`queue.put`."""
        if not payloads:
            return Requests.of(())
        some = b"?" * len(payloads[0])
        options = [{"delay": delay}] if delay else []
        before, after = call_frame("queue.put", [some.decode(), *options]).split(some)
        return Requests.between(before, payloads, after)

    def takes(self, count: int, timeout: int = 0) -> Requests:
        """`queue.take`."""
        return Requests.alike(call_frame("queue.take", [timeout] if timeout else []), count)

    def acks(self, tasks: Sequence[bytes]) -> Requests:
        """`queue.ack` of tasks, by the ids in their answers."""
        # The only argument is at the end of the frame.
        any_id = 2**63
        before = call_frame("queue.ack", [any_id]).removesuffix(msgpack.packb(any_id))
        return Requests.between(before, tasks, b"")

    def tasks_in(self, answers: bytes) -> list[bytes]:
        """Return the ids of the tasks, as msgpack."""
        return _ID.findall(answers)

    def done_in(self, answers: bytes) -> int:
        """Count the answers that are not errors."""
        return len(_OK.findall(answers))


IPROTO: Final = Iproto()


class IprotoConnection(Connection):
    """A connection that can call procedures.

    Parameters:
        address: the server's host and port.
        in_flight: the maximum number of requests in flight.
    """

    def __init__(self, address: Address, in_flight: int = 1) -> None:
        super().__init__(address, IPROTO, in_flight)

    def call(self, procedure: str, *arguments: object) -> Any:
        """Call a procedure; no other request may be in flight.

        Returns:
            The returned values.

        Raises:
            RuntimeError: The call failed.
        """
        unpacker = msgpack.Unpacker(strict_map_key=False)
        unpacker.feed(self.ask(Requests.alike(call_frame(procedure, arguments), 1))[LENGTH_SIZE:])
        unpacker.unpack()
        body = unpacker.unpack()
        if _DATA not in body:
            raise RuntimeError(f"{procedure}: {body[_ERROR]}")
        return body[_DATA]


def row_requests(operation: str, space_id: int, keys: Iterable[int], payloads: Iterable[bytes]) -> Requests:
    """Encode requests for single rows of a space with a number as the key and a string.

    Parameters:
        operation: "insert", "replace", "update", "delete" or "select".
        space_id: the space's id.
        keys: the keys of the rows.
        payloads: the strings, for operations that send one.
    """
    kind = {"select": _SELECT, "insert": _INSERT, "replace": _REPLACE, "update": _UPDATE, "delete": _DELETE}
    return Requests.of(
        request_frame(kind[operation], {_SPACE_ID: space_id, **_row_body(operation, key, payload.decode())})
        for key, payload in zip(keys, payloads, strict=True)
    )


def _row_body(operation: str, key: int, payload: str) -> dict[int, object]:
    match operation:
        case "insert" | "replace":
            return {_TUPLE: [key, payload]}
        case "update":
            return {_INDEX_ID: 0, _KEY: [key], _TUPLE: [["=", 1, payload]]}
        case "delete":
            return {_INDEX_ID: 0, _KEY: [key]}
        case _:
            return {_INDEX_ID: 0, _LIMIT: 1, _OFFSET: 0, _ITERATOR: 0, _KEY: [key]}
