"""How many there were, and how many a second."""

from __future__ import annotations

from iproto_server.server.stats.rates import WINDOW, Rates


def test_totals_count_from_the_beginning() -> None:
    totals = {"a": 3}
    rates = Rates(lambda: totals)
    totals["a"] = 5
    totals["b"] = 1
    assert rates.now() == {"a": {"total": 5, "rps": 0}, "b": {"total": 1, "rps": 0}}


def test_the_rate_is_the_mean_of_the_last_seconds() -> None:
    totals = {"a": 0}
    rates = Rates(lambda: totals)
    seen = []
    for count in (10, 10, 10, 10, 10, 0, 0, 0, 0, 0, 0):
        totals["a"] += count
        rates.sample()
        seen.append(rates.now()["a"]["rps"])
    assert WINDOW == 5
    assert seen == [2, 4, 6, 8, 10, 8, 6, 4, 2, 0, 0]
    assert rates.now()["a"]["total"] == 50


def test_what_came_in_the_running_second_is_in_the_total_only() -> None:
    totals = {"a": 0}
    rates = Rates(lambda: totals)
    rates.sample()
    totals["a"] = 100
    assert rates.now() == {"a": {"total": 100, "rps": 0}}


def test_a_reset_counts_anew() -> None:
    totals = {"a": 100}
    rates = Rates(lambda: totals)
    rates.sample()
    rates.reset()
    assert rates.now() == {"a": {"total": 0, "rps": 0}}
    totals["a"] += 7
    rates.sample()
    assert rates.now() == {"a": {"total": 7, "rps": 1}}
    assert totals["a"] == 107
