"""What is to be sent to a client, held until the rows that it rests on are in the log."""

from __future__ import annotations

from typing import NamedTuple

from iproto_server.errors import BoxError
from iproto_server.protocol.response import encode_error, is_answer, response_sync, response_version


class Output(NamedTuple):
    """Responses that are held until rows are in the log.

    Attributes:
        responses: Whole frames.
        logged: The places of those among them that rest on such rows.
        size: How many bytes they are.
    """

    responses: list[bytes]
    logged: list[int]
    size: int

    def refused(self, error: BoxError) -> Output:
        """What is sent instead when the rows could not be written."""
        for place in self.logged:
            self.responses[place] = self.refusal_of(self.responses[place], error)
        return self

    @staticmethod
    def refusal_of(response: bytes, error: BoxError) -> bytes:
        """What is sent instead of a response."""
        return encode_error(response_sync(response), response_version(response), error)

    def without_pushed(self) -> tuple[list[bytes], Output]:
        """The frames that answer no request, and the rest.

        They rest on no rows, and a message that waits with others could come after the answer to its request.
        """
        pushed: list[bytes] = []
        rest = Output([], [], self.size)
        logged = set(self.logged)
        for place, response in enumerate(self.responses):
            if not is_answer(response):
                pushed.append(response)
                continue
            if place in logged:
                rest.logged.append(len(rest.responses))
            rest.responses.append(response)
        return pushed, rest._replace(size=self.size - sum(map(len, pushed)))
