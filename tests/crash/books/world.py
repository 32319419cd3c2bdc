"""The expected rows of one client: the result of its operations up to the last one that was kept.

A client sends its operations on one connection, which executes them in order, and nobody else writes to
its places. So after a crash the contents of its places must match the state after some operation: not before
the last acknowledged one, and not after the last that was sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.crash.checks.finding import Finding, Kind

Place = tuple[str, Any]
"""A space's name and a key; or "space" and a name, for the indexes of the space with that name."""

Value = Any
"""The row at a place, or the names of a space's indexes; None if nothing is there."""

SHOWN = 5
"""The maximum number of reported differences of one client."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One request and its effect.

    Parameters:
        kind: Its name, for reports.
        request_type: The request's type.
        body: The request's body.
        changes: The resulting contents of the places that it changes.
        data: The expected answer; None if any is accepted.
        error_code: The expected error; 0 for success.
    """

    kind: str
    request_type: int
    body: Mapping[int, Any]
    changes: Mapping[Place, Value]
    data: Any = None
    error_code: int = 0


class World:
    """The expected contents of one client's places.

    Parameters:
        client: The client.
        places: The contents before the first operation.

    Attributes:
        client: The client.
        certain: The contents after the last acknowledged operation.
        ahead: The contents after the last operation sent.
        sent: The number of operations sent so far.
    """

    def __init__(self, client: int, places: Mapping[Place, Value]) -> None:
        self.client = client
        self.certain: dict[Place, Value] = dict(places)
        self.ahead: dict[Place, Value] = dict(places)
        self.sent = 0
        self._pending: deque[tuple[int, Operation]] = deque()
        self._versions: dict[Place, int] = {}

    def next_version(self, place: Place) -> int:
        """Return a version that no row at this place has had."""
        version = self._versions.get(place, 0) + 1
        self._versions[place] = version
        return version

    def send(self, operation: Operation) -> int:
        """Record an operation that is sent.

        Returns:
            Its number.
        """
        self.sent += 1
        self._pending.append((self.sent, operation))
        _apply(self.ahead, operation)
        return self.sent

    def acknowledge(self, number: int) -> None:
        """Record the expected answer to an operation; all operations before it have succeeded, too."""
        while self._pending and self._pending[0][0] <= number:
            _apply(self.certain, self._pending.popleft()[1])

    @property
    def unknown(self) -> int:
        """Return the number of operations with an unknown outcome."""
        return len(self._pending)

    def compare(self, found: Mapping[Place, Value]) -> list[Finding]:
        """Compare with the contents after a restart, which are certain from then on.

        Parameters:
            found: The contents of the client's places.
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
        """Report the differences from the closest possible state."""
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
        """Whether an operation with an unknown outcome is there in part."""
        changes = [
            (place, value) for place, value in operation.changes.items() if self.certain.get(place) != value
        ]
        done = [place for place, value in changes if found.get(place) == value]
        undone = [place for place, _ in changes if found.get(place) == self.certain.get(place)]
        return bool(done) and bool(undone)


def shown(value: Value) -> str:
    """Abbreviate a value."""
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
    """Return the places that differ, with their expected contents."""
    return {
        place: expected.get(place)
        for place in expected.keys() | found.keys()
        if expected.get(place) != found.get(place)
    }
