"""The expected rows numbered by a sequence: no number is used twice, across all restarts."""

from __future__ import annotations

from collections.abc import Iterator

from tests.crash.checks.finding import Finding, Kind
from tests.crash.schema import Row


class Numbering:
    """The expected numbered rows. A row is identified by its token; the answer contains its number."""

    def __init__(self) -> None:
        self._tokens = 0
        self._given: dict[int, int] = {}
        self._present: dict[int, int] = {}
        self._leaving: set[int] = set()

    # -- requests --

    def insert(self) -> int:
        """Record that a row is inserted.

        Returns:
            Its token.
        """
        self._tokens += 1
        return self._tokens

    def delete(self, number: int) -> None:
        """Record that a row is deleted."""
        del self._present[number]
        self._leaving.add(number)

    @property
    def present(self) -> list[int]:
        """Return the numbers of the existing rows."""
        return list(self._present)

    # -- answers --

    def inserted(self, row: Row) -> list[Finding]:
        """Record the answer to an insertion."""
        number, token = row
        if number in self._given:
            what = f"the number {number} is given to row {token} after row {self._given[number]}"
            return [Finding(Kind.COUNTER, what)]
        self._given[number] = self._present[number] = token
        return []

    def deleted(self, number: int) -> None:
        """Record the answer to a deletion."""
        self._leaving.discard(number)

    # -- after a restart --

    def compare(self, rows: list[Row]) -> list[Finding]:
        """Compare with the contents after a restart, which are certain from then on."""
        found: dict[int, int] = dict(map(tuple, rows))
        findings = list(self._compare(found))
        self._given |= found
        self._present = found
        self._leaving.clear()
        return findings

    def _compare(self, found: dict[int, int]) -> Iterator[Finding]:
        for number, token in found.items():
            given = self._given.get(number)
            if not 0 < token <= self._tokens:
                yield Finding(Kind.STRANGE, f"row {number} has the token {token}, which nobody has sent")
            elif given is not None and given != token:
                yield Finding(Kind.COUNTER, f"the number {number} is that of the rows {given} and {token}")
            elif given is not None and number not in self._present and number not in self._leaving:
                yield Finding(Kind.LOST, f"row {number} was deleted, but is there")
        for number, token in self._present.items():
            if number not in found:
                yield Finding(Kind.LOST, f"row {number} with the token {token} is lost")
