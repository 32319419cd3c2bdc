"""The interface that group commit sends responses through."""

from __future__ import annotations

from typing import Protocol

from iproto_server.errors import BoxError
from iproto_server.native._native import Output


class OutgoingConnection(Protocol):
    """A connection with responses to send; `Connection` implements it."""

    @property
    def has_logged_output(self) -> bool:
        """Whether a response rests on rows that are not in the log yet."""

    def send_output(self) -> None:
        """Send all responses."""

    def refuse_logged(self, error: BoxError) -> None:
        """Replace the responses that rest on unwritten rows by an error."""

    def take_output(self) -> Output:
        """Hand over all responses, to be given to `send` when their rows are in the log."""

    def send(self, output: Output, error: BoxError | None = None) -> None:
        """Send what `take_output` has handed over, with an error instead of what rests on unwritten rows."""
