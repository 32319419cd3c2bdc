"""What the rows of one client must be: what its operations made them, up to the last that has been kept.

A client sends its operations on one connection, which carries them out in order, and nobody else writes to
its places. So after a crash its places must look as they did after some operation: not before the last
acknowledged one, and not after the last that was sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.crash.finding import Finding, Kind

Place = tuple[str, Any]
"""A space's name and a key; or "space" and a name, for what indexes the space of that name has."""

Value = Any
"""The row at a place, or the names of a space's indexes; None: nothing is there."""

SHOWN = 5
"""So many differences of one client are told in full."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One request and what it does.

    Args:
        kind: Its name, for reports.
        request_type: The request's type.
        body: The request's body.
        changes: What is at the places that it changes, afterwards.
        data: What it must be answered with; None if that does not matter.
        error_code: The error that it must be refused with; 0 if it must succeed.
    """

    kind: str
    request_type: int
    body: Mapping[int, Any]
    changes: Mapping[Place, Value]
    data: Any = None
    error_code: int = 0


class World:
    """The books about one client's places.

    Args:
        client: Whose.
        places: What is there before the first operation.

    Attributes:
        client: As given.
        certain: What is there after the last acknowledged operation.
        ahead: What will be there after the last operation sent.
        sent: How many operations were sent, ever.
    """

    def __init__(self, client: int, places: Mapping[Place, Value]) -> None:
        self.client = client
        self.certain: dict[Place, Value] = dict(places)
        self.ahead: dict[Place, Value] = dict(places)
        self.sent = 0
        self._pending: deque[tuple[int, Operation]] = deque()
        self._versions: dict[Place, int] = {}

    def next_version(self, place: Place) -> int:
        """A version that no row at this place has had."""
        version = self._versions.get(place, 0) + 1
        self._versions[place] = version
        return version

    def send(self, operation: Operation) -> int:
        """An operation is sent.

        Returns:
            Its number.
        """
        self.sent += 1
        self._pending.append((self.sent, operation))
        _apply(self.ahead, operation)
        return self.sent

    def acknowledge(self, number: int) -> None:
        """An operation was answered as it must be; so those before it were carried out, too."""
        while self._pending and self._pending[0][0] <= number:
            _apply(self.certain, self._pending.popleft()[1])

    @property
    def unknown(self) -> int:
        """How many operations have no known fate."""
        return len(self._pending)

    def compare(self, found: Mapping[Place, Value]) -> list[Finding]:
        """Compare with what is there after a restart; from now on that is what is certain.

        Args:
            found: What is at the client's places.
        """
        state = dict(self.certain)
        nearest = _differences(state, found)
        nearest_after = 0
        if nearest:
            for number, operation in self._pending:
                _apply(state, operation)
                differences = _differences(state, found)
                if len(differences) < len(nearest):
                    nearest, nearest_after = differences, number
                if not nearest:
                    break
        findings = self._explain(nearest, nearest_after, found) if nearest else []
        self.certain, self.ahead = dict(found), dict(found)
        self._pending.clear()
        return findings

    def _explain(
        self, differences: dict[Place, Value], after: int, found: Mapping[Place, Value]
    ) -> list[Finding]:
        """Say what is different from the state that comes nearest to what is there."""
        kind = (
            Kind.HALF if any(self._is_half(operation, found) for _, operation in self._pending) else Kind.LOST
        )
        which = f"operation {after}" if after else "the last acknowledged operation"
        findings = [
            Finding(
                kind,
                f"client {self.client}, {place[0]} {place[1]!r}: {shown(found.get(place))} is there, "
                f"{shown(value)} should be after {which}",
            )
            for place, value in list(differences.items())[:SHOWN]
        ]
        if len(differences) > SHOWN:
            findings.append(
                Finding(kind, f"client {self.client}: {len(differences) - SHOWN} more places are different")
            )
        return findings

    def _is_half(self, operation: Operation, found: Mapping[Place, Value]) -> bool:
        """Whether some of what an operation of unknown fate changes is there, and some is as it was."""
        changes = [
            (place, value) for place, value in operation.changes.items() if self.certain.get(place) != value
        ]
        done = [place for place, value in changes if found.get(place) == value]
        undone = [place for place, _ in changes if found.get(place) == self.certain.get(place)]
        return bool(done) and bool(undone)


def shown(value: Value) -> str:
    """A value in few words."""
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:80]}… ({len(text)} characters)"


def _apply(places: dict[Place, Value], operation: Operation) -> None:
    for place, value in operation.changes.items():
        if value is None:
            places.pop(place, None)
        else:
            places[place] = value


def _differences(expected: Mapping[Place, Value], found: Mapping[Place, Value]) -> dict[Place, Value]:
    """The places that are different, with what is expected there."""
    return {
        place: expected.get(place)
        for place in expected.keys() | found.keys()
        if expected.get(place) != found.get(place)
    }
