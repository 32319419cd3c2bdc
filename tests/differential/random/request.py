"""A request of a case: its encoding and its representation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.differential.ddl import system_rows
from tests.differential.random.values.packing import Packed, pack, readable
from tests.iproto_client import (
    AUTH,
    CALL,
    CALL_16,
    DELETE,
    EVAL,
    INDEX_BASE,
    INDEX_ID,
    INSERT,
    ITERATOR,
    KEY,
    LIMIT,
    OFFSET,
    OPERATIONS,
    PING,
    REPLACE,
    REQUEST_TYPE,
    SELECT,
    SPACE_ID,
    SYNC,
    TUPLE,
    UPDATE,
    UPSERT,
)

GUEST: Final = "guest"

_KINDS: Final = {
    SELECT: "SELECT",
    INSERT: "INSERT",
    REPLACE: "REPLACE",
    UPDATE: "UPDATE",
    DELETE: "DELETE",
    CALL_16: "CALL_16",
    AUTH: "AUTH",
    EVAL: "EVAL",
    UPSERT: "UPSERT",
    CALL: "CALL",
    PING: "PING",
}
_KEYS: Final = {
    SPACE_ID: "space",
    INDEX_ID: "index",
    LIMIT: "limit",
    OFFSET: "offset",
    ITERATOR: "iterator",
    INDEX_BASE: "index_base",
    KEY: "key",
    TUPLE: "tuple",
    OPERATIONS: "operations",
}


@dataclass(frozen=True, slots=True)
class Request:
    """A request to both servers.

    Parameters:
        kind: Its type.
        body: Its body: a map, or bytes to be sent as they are.
        header: Header keys beside, or in place of, the type and the sync; or the header's bytes.
        user: The user that sends it.
        unordered: Whether rows may be walked through in any order: those of the answer, or those that a
            change of a definition has to fit, of which the first unfit one is named.
    """

    kind: int
    body: Mapping[Any, Any] | bytes = b""
    header: Mapping[Any, Any] | bytes = field(default_factory=dict)
    user: str = GUEST
    unordered: bool = False

    @classmethod
    def of(cls, request: system_rows.Request, user: str = GUEST) -> Request:
        """The same request about a system space, of a user."""
        return cls(request.kind, request.body, user=user)

    def packed(self, sync: int) -> bytes:
        """Header and body.

        Parameters:
            sync: The request's number.
        """
        if isinstance(self.header, bytes):
            header = self.header
        else:
            header = pack({REQUEST_TYPE: self.kind, SYNC: sync, **self.header})
        return header + (self.body if isinstance(self.body, bytes) else pack(dict(self.body)))

    @property
    def is_raw(self) -> bool:
        """Whether it contains bytes that no packer may have produced."""
        if isinstance(self.header, bytes) or isinstance(self.body, bytes):
            return True
        return any(isinstance(value, Packed) for value in self.body.values())

    @property
    def space_id(self) -> object:
        """Return the id of its space, if it has one."""
        return self.body.get(SPACE_ID) if isinstance(self.body, Mapping) else None

    def __str__(self) -> str:
        words = [] if self.user == GUEST else [f"{self.user}:"]
        words.append(_KINDS.get(self.kind, f"type {self.kind}"))
        if self.header:
            header = self.header.hex() if isinstance(self.header, bytes) else self.header
            words.append(f"header={header}")
        if isinstance(self.body, Mapping):
            words += [f"{_KEYS.get(key, key)}={value!r}" for key, value in self.body.items()]
        elif self.body:
            words.append(f"body={self.body.hex()} = {readable(self.body)}")
        return " ".join(words)
