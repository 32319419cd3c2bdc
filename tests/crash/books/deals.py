"""The expected deals: transactions in streams that move an amount from one share to another.

A deal changes two rows of the shares and writes itself down in a row of its own, so the deals that are there
tell what the shares must be. Some let the two shares exchange their seats, too. Everybody deals with the same
shares, so there are conflicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Self

from tests.crash import schema
from tests.crash.checks.finding import Finding, Kind
from tests.crash.schema import Row


class Outcome(Enum):
    """Whether a deal is in the database, as far as is known."""

    OPEN = "not committed"
    UNKNOWN = "perhaps committed"
    DONE = "committed"


@dataclass(slots=True)
class Deal:
    """The expected state of one deal.

    Attributes:
        number: Its key.
        source, target: The shares.
        amount: The amount moved from one share to the other.
        outcome: Whether it is there, as far as is known.
    """

    number: int
    source: int
    target: int
    amount: int
    outcome: Outcome = Outcome.OPEN

    @classmethod
    def found(cls, row: Row) -> Self:
        """A deal that is there."""
        number, source, target, amount = row
        return cls(number, source, target, amount, Outcome.DONE)

    @property
    def row(self) -> Row:
        """Return the rows it writes."""
        return [self.number, self.source, self.target, self.amount]


class Deals:
    """The expected state of all deals."""

    def __init__(self) -> None:
        self._deals: dict[int, Deal] = {}
        self._next = 0
        self._done = 0
        self._seen = 0

    def begin(self, source: int, target: int, amount: int) -> Deal:
        """Add a deal that is not committed."""
        self._next += 1
        deal = self._deals[self._next] = Deal(self._next, source, target, amount)
        return deal

    def committing(self, deal: Deal) -> None:
        """Record that its COMMIT is sent."""
        deal.outcome = Outcome.UNKNOWN

    def committed(self, deal: Deal) -> None:
        """Record that its COMMIT is acknowledged."""
        deal.outcome = Outcome.DONE
        self._done += 1

    def refused(self, deal: Deal) -> None:
        """Record that a part of it was refused, which excludes all of it."""
        deal.outcome = Outcome.OPEN

    # -- reads while the server runs --

    @property
    def floor(self) -> int:
        """Return the number of changes of shares that every later reader must see."""
        return max(2 * self._done, self._seen)

    def look(self, shares: list[Row], floor: int) -> list[Finding]:
        """Check a consistent view of the shares that a reader has seen.

        Parameters:
            shares: The rows.
            floor: The value of `floor` before the read.
        """
        balance, changes = (sum(row[field] for row in shares) for field in (1, 2))
        findings = []
        if len(shares) != schema.SHARES or balance != schema.SHARES * schema.BALANCE:
            findings.append(Finding(Kind.ISOLATION, f"somebody sees {len(shares)} shares with {balance}"))
        if not _have_all_seats(shares):
            findings.append(Finding(Kind.ISOLATION, f"somebody sees the seats {[row[3] for row in shares]}"))
        if changes % 2:
            findings.append(Finding(Kind.ISOLATION, f"somebody sees half a deal: {changes} changes"))
        if changes < floor:
            findings.append(
                Finding(Kind.ISOLATION, f"somebody sees {changes} changes of shares, not {floor}")
            )
        self._seen = max(self._seen, changes)
        return findings

    # -- after a restart --

    def compare(self, deals: list[Row], shares: list[Row]) -> list[Finding]:
        """Compare with the contents after a restart, which are certain from then on.

        Parameters:
            deals: The deals' rows.
            shares: The shares' rows.
        """
        findings = [*self._compare_deals(deals), *self._compare_shares(deals, shares)]
        self._deals = {row[0]: Deal.found(row) for row in deals}
        self._done, self._seen = len(deals), 0
        return findings

    def _compare_deals(self, rows: list[Row]) -> Iterator[Finding]:
        found = {row[0]: row for row in rows}
        for number, row in found.items():
            deal = self._deals.get(number)
            if deal is None and number > self._next:
                yield Finding(Kind.STRANGE, f"nobody has begun the deal {row}")
            elif deal is None or deal.outcome is Outcome.OPEN:
                yield Finding(Kind.ROLLBACK, f"the deal {row} was not committed, but is there")
            elif row != deal.row:
                yield Finding(Kind.STRANGE, f"the deal {row} should be {deal.row}")
        for number, deal in self._deals.items():
            if deal.outcome is Outcome.DONE and number not in found:
                yield Finding(Kind.LOST, f"the deal {deal.row} was committed, but is not there")

    def _compare_shares(self, deals: list[Row], shares: list[Row]) -> Iterator[Finding]:
        expected = {key: schema.share(key) for key in range(schema.SHARES)}
        for _, source, target, amount in deals:
            for key, difference in ((source, -amount), (target, amount)):
                expected[key][1] += difference
                expected[key][2] += 1
        found = {row[0]: row for row in shares}
        for key in sorted(expected.keys() | found.keys()):
            row, right = found.get(key), expected.get(key)
            if row is None or right is None or row[:3] != right[:3]:
                yield Finding(Kind.HALF, f"by the deals that are there, {row} should be {right}")
        if not _have_all_seats(shares):
            yield Finding(Kind.HALF, f"the shares do not have all seats once: {shares}")


def _have_all_seats(shares: list[Row]) -> bool:
    return sorted(row[3] for row in shares) == list(range(schema.SHARES))
