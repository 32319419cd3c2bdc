"""The states of a connection, and the events that change them.

Two rules hold everywhere else:

1. Only `next_phase` decides which phase follows; an event that has no entry changes nothing.
2. Whether the next request may be handled is decided by `ConnectionState.must_hold` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum, auto
from typing import Final

from iproto_server.native import _native


class Phase(IntEnum):
    """What a connection does with requests."""

    SERVING = _native.PHASE_SERVING
    """It is read from, and requests are handled when they arrive."""
    HELD = _native.PHASE_HELD
    """It is not read from; requests that have arrived are handled in turns with those of others, or wait."""
    CLOSING = _native.PHASE_CLOSING
    """No more requests are handled; it closes when its answers are sent."""
    DRAINING = _native.PHASE_DRAINING
    """The transport is closed; requests that had arrived are handled in turns, and nobody is answered."""
    ENDED = _native.PHASE_ENDED
    """The transport is closed, and no more requests are handled."""


Transitions = Mapping[int, int]


class Event:
    """What changes the phase: each event as the phase that follows each phase in which it has an effect."""

    HOLD: Final[Transitions] = {Phase.SERVING: Phase.HELD}
    """The next request has to wait, or there are more than can be handled at once."""
    CATCH_UP: Final[Transitions] = {Phase.HELD: Phase.SERVING}
    """All requests that had arrived are handled."""
    CLOSE: Final[Transitions] = {
        Phase.SERVING: Phase.CLOSING,
        Phase.HELD: Phase.CLOSING,
        Phase.DRAINING: Phase.ENDED,
    }
    """The server, or the end of the client, allows no more requests."""
    LOSE: Final[Transitions] = {
        Phase.SERVING: Phase.DRAINING,
        Phase.HELD: Phase.DRAINING,
        Phase.CLOSING: Phase.ENDED,
    }
    """The transport was closed."""


def next_phase(phase: int, event: Transitions) -> int:
    """Return the phase after an event.

    Parameters:
        phase: the phase before it, a `Phase` as a number.
        event: a constant of `Event`.

    Returns:
        The next phase; the same one if the event has no effect in it.
    """
    return event.get(phase, phase)


class Wait:
    """What requests wait for: numbers of one bit each. They are no `IntFlag`, whose operators are slow."""

    READER: Final = _native.WAIT_READER
    """The transport's buffer is full: the client has to read."""
    ROOM: Final = _native.WAIT_ROOM
    """An answer is too large for the common limit of unsent bytes."""
    REQUEST: Final = _native.WAIT_REQUEST
    """The request before them is still being handled."""


class ClientEnd(Enum):
    """What is known of the client's end of the connection."""

    UNWATCHED = auto()
    """It is noticed by reading only."""
    WATCHED = auto()
    """A hangup is reported even while the connection is not read from."""
    SENDS_NO_MORE = auto()
    """The client has shut its sending side down; requests before that may not have been read."""
    GONE = auto()
    """The client can be sent nothing more."""
    READ = auto()
    """Everything that it has sent was read."""

    def after_hangup(self, is_gone: bool) -> ClientEnd:
        """Return what is known after a hangup was reported.

        Parameters:
            is_gone: whether the client can be sent nothing more; otherwise it only sends no more.
        """
        if is_gone:
            return ClientEnd.GONE
        return self if self is ClientEnd.READ else ClientEnd.SENDS_NO_MORE
