"""Our server and a real Tarantool, which get the same requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.iproto_client import Answer, IprotoClient

SUPER_GUEST = "tests.differential.super_guest:app"
"""An application of ours that does what `GUEST_IS_SUPER` does there."""


@dataclass(frozen=True, slots=True)
class Both:
    """A connection to each of the two servers.

    Parameters:
        ours: The one to our server.
        theirs: The one to the real Tarantool.
    """

    ours: IprotoClient
    theirs: IprotoClient

    def request(
        self,
        request_type: int,
        body: Mapping[int, Any] | bytes = b"",
        header: Mapping[int, Any] | None = None,
    ) -> Answer:
        """Send a request to both servers, and check that the answers are equal.

        The same are the status, the bytes of the rows, the error's text, and the error stack but for the
        places in the source. The schema's version is not compared: the two begin with different ones.

        Parameters:
            request_type: Its type.
            body: Its body: a map, or bytes to be sent as they are.
            header: Header keys beside, or in place of, the type and the sync.

        Returns:
            Our answer.
        """
        theirs = self.theirs.request(request_type, body, header)
        ours = self.ours.request(request_type, body, header)
        _compare((request_type, body, header), outcome(ours), outcome(theirs))
        return ours

    def call(self, procedure: str, *arguments: Any) -> Answer:
        """CALL a procedure of both, and check that the answers are equal; maps may differ in order."""
        theirs = self.theirs.call(procedure, *arguments)
        ours = self.ours.call(procedure, *arguments)
        _compare((procedure, arguments), outcome(ours, bytewise=False), outcome(theirs, bytewise=False))
        return ours

    def prepare(self, procedure: str, *arguments: Any) -> None:
        """CALL a procedure of both for its effect (`box.schema.create_space`), ignoring its answer."""
        for client in (self.theirs, self.ours):
            client.call(procedure, *arguments)


def outcome(answer: Answer, *, bytewise: bool = True) -> tuple[object, ...]:
    """Return the part of an answer that must be equal.

    Parameters:
        answer: One of them.
        bytewise: Whether a success must have equal bytes, not only equal values.

    Returns:
        The status, and the body or the error.
    """
    if answer.ok:
        return (0, answer.raw_body if bytewise else answer.body)
    return (answer.error_code, answer.error, answer.error_stack)


def _compare(request: object, ours: tuple[object, ...], theirs: tuple[object, ...]) -> None:
    assert ours == theirs, f"asked {request}\nours:   {ours}\ntheirs: {theirs}"
