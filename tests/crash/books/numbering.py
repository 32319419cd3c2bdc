"""What is known of rows that a sequence numbers: no number is given to two of them, over all restarts."""

from __future__ import annotations

from collections.abc import Iterator

from tests.crash.finding import Finding, Kind
from tests.crash.schema import Row


class Numbering:
    """The books about the numbered rows. A row is known by its token; its number comes with the answer."""

    def __init__(self) -> None:
        self._tokens = 0
        self._given: dict[int, int] = {}
        self._present: dict[int, int] = {}
        self._leaving: set[int] = set()

    # -- what is asked for --

    def insert(self) -> int:
        """A row is inserted.

        Returns:
            Its token.
        """
        self._tokens += 1
        return self._tokens

    def delete(self, number: int) -> None:
        """A row is deleted."""
        del self._present[number]
        self._leaving.add(number)

    @property
    def present(self) -> list[int]:
        """The numbers of the rows that are there."""
        return list(self._present)

    # -- what is answered --

    def inserted(self, row: Row) -> list[Finding]:
        """An insertion was answered with a row."""
        number, token = row
        if number in self._given:
            what = f"the number {number} is given to row {token} after row {self._given[number]}"
            return [Finding(Kind.COUNTER, what)]
        self._given[number] = self._present[number] = token
        return []

    def deleted(self, number: int) -> None:
        """A deletion was answered."""
        self._leaving.discard(number)

    # -- after a restart --

    def compare(self, rows: list[Row]) -> list[Finding]:
        """Compare with what is there after a restart; from now on that is what is certain."""
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
