"""Counters of the bytes that all connections of a server have received and sent."""

from __future__ import annotations

from iproto_server.native import twin


@twin
class Traffic:
    """Counts bytes; connections add to it whenever they receive or send.

    Attributes:
        received: bytes received.
        sent: bytes handed to transports.
    """

    __slots__ = ("received", "sent")

    def __init__(self) -> None:
        self.received = 0
        self.sent = 0
