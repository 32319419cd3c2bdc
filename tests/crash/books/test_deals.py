"""Findings about deals, in contents after a restart and in reads."""

from __future__ import annotations

import pytest

from tests.crash.books.deals import Deals
from tests.crash.checks.finding import Finding, Kind
from tests.crash.model import Dealings
from tests.crash.schema import BALANCE, SHARES, Row


@pytest.fixture
def dealings() -> Dealings:
    return Dealings(Deals())


def kinds(findings: list[Finding]) -> set[Kind]:
    return {finding.kind for finding in findings}


def compare(dealings: Dealings) -> set[Kind]:
    return kinds(dealings.books.compare(dealings.rows(), dealings.shares()))


def test_what_is_committed_is_there(dealings: Dealings) -> None:
    assert compare(dealings) == set()
    dealings.made.pop()
    assert compare(dealings) == {Kind.LOST}


def test_what_is_perhaps_committed_may_be_there(dealings: Dealings) -> None:
    deal = dealings.begin()
    dealings.books.committing(deal)
    assert compare(dealings) == set()
    deal = dealings.begin()
    dealings.books.committing(deal)
    dealings.made.append(deal)
    assert compare(dealings) == set()
    dealings.made.pop()
    assert compare(dealings) == {Kind.LOST}, "it was there after the last restart"


def test_what_is_not_committed_is_not_there(dealings: Dealings) -> None:
    dealings.made.append(dealings.begin())
    assert compare(dealings) == {Kind.ROLLBACK}


def test_what_is_refused_is_not_there(dealings: Dealings) -> None:
    deal = dealings.begin()
    dealings.books.committing(deal)
    dealings.books.refused(deal)
    dealings.made.append(deal)
    assert compare(dealings) == {Kind.ROLLBACK}


def test_what_was_not_there_does_not_come_back(dealings: Dealings) -> None:
    deal = dealings.begin()
    dealings.books.committing(deal)
    assert compare(dealings) == set()
    dealings.made.append(deal)
    assert compare(dealings) == {Kind.ROLLBACK}


def test_a_deal_of_nobody(dealings: Dealings) -> None:
    deal = dealings.begin()
    deal.number = 1000
    dealings.made.append(deal)
    assert compare(dealings) == {Kind.STRANGE}


def test_another_deal_than_was_made(dealings: Dealings) -> None:
    dealings.made[3].amount += 1
    rows = dealings.rows()
    dealings.made[3].amount -= 1
    assert kinds(dealings.books.compare(rows, dealings.shares())) == {Kind.STRANGE, Kind.HALF}


@pytest.mark.parametrize("field", [1, 2, 3])
def test_a_share_that_does_not_fit(dealings: Dealings, field: int) -> None:
    shares = dealings.shares()
    shares[2][field] += 1
    rows = dealings.rows()
    assert kinds(dealings.books.compare(rows, shares)) == {Kind.HALF}


class TestLooks:
    def test_a_state_between_two_deals(self, dealings: Dealings) -> None:
        assert dealings.books.look(dealings.shares(), dealings.books.floor) == []

    @pytest.mark.parametrize("change", [[0, -1, 1, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    def test_a_part_of_a_deal(self, dealings: Dealings, change: Row) -> None:
        shares = dealings.shares()
        shares[0] = [value + difference for value, difference in zip(shares[0], change, strict=True)]
        assert kinds(dealings.books.look(shares, 0)) == {Kind.ISOLATION}

    def test_a_share_that_is_missing(self, dealings: Dealings) -> None:
        assert kinds(dealings.books.look(dealings.shares()[1:], 0)) == {Kind.ISOLATION}

    def test_less_than_is_committed(self, dealings: Dealings) -> None:
        shares = dealings.shares()
        dealings.make()
        assert kinds(dealings.books.look(shares, dealings.books.floor)) == {Kind.ISOLATION}

    def test_less_than_was_seen(self, dealings: Dealings) -> None:
        before = dealings.shares()
        deal = dealings.begin()
        dealings.made.append(deal)
        assert dealings.books.look(dealings.shares(), 0) == []
        assert kinds(dealings.books.look(before, dealings.books.floor)) == {Kind.ISOLATION}

    def test_a_look_that_began_before_the_commit(self, dealings: Dealings) -> None:
        floor, shares = dealings.books.floor, dealings.shares()
        dealings.make()
        assert dealings.books.look(shares, floor) == []

    def test_what_was_seen_but_never_acknowledged_may_be_lost(self, dealings: Dealings) -> None:
        before = dealings.shares()
        dealings.made.append(dealings.begin())
        dealings.books.committing(dealings.made[-1])
        dealings.books.look(dealings.shares(), 0)
        dealings.made.pop()
        assert compare(dealings) == set()
        assert dealings.books.look(before, dealings.books.floor) == []


def test_at_first_everybody_has_the_same() -> None:
    shares = [[key, BALANCE, 0, key] for key in range(SHARES)]
    assert Deals().look(shares, 0) == []
