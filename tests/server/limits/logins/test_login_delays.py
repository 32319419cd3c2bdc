"""Wrong passwords cost time, and the right one never more than a second."""

from __future__ import annotations

import pytest

from iproto_server.server.limits.login_delays import (
    FORGIVEN_AFTER,
    FREE_FAILURES,
    FREE_FAILURES_OF_ADDRESS,
    KEPT_FAILURES,
    LONGEST_DELAY,
    MAX_ENTRIES,
    LoginDelays,
    address_of,
)


class Time:
    """Steady time that a test moves."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> float:
        return self.seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def delays(time: Time) -> LoginDelays:
    return LoginDelays(time.now)


def fail(delays: LoginDelays, times: int, address: str = "1.2.3.4", user: str = "ann") -> list[float]:
    """Try wrong passwords; the answer is how long each had to wait."""
    return [delays.begin(address, user).delay for _ in range(times)]


def test_five_failures_are_free_and_the_others_wait_longer_and_longer(delays: LoginDelays) -> None:
    assert fail(delays, 12) == [0, 0, 0, 0, 0, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]
    assert max(fail(delays, 10_000)) == LONGEST_DELAY == 1.0


def test_other_users_of_the_address_and_other_addresses_of_the_user_do_not_wait(delays: LoginDelays) -> None:
    fail(delays, 1000)
    assert delays.begin("1.2.3.4", "ben").delay == 0
    assert delays.begin("1.2.3.5", "ann").delay == 0
    assert delays.begin("unix/", "ann").delay == 0


def test_right_passwords_are_no_failures(delays: LoginDelays) -> None:
    for _ in range(1000):
        attempt = delays.begin("1.2.3.4", "ann")
        assert attempt.delay == 0
        attempt.succeeded()
    assert len(delays) == 0
    fail(delays, FREE_FAILURES)
    for _ in range(1000):
        attempt = delays.begin("1.2.3.4", "ann")
        assert attempt.delay == 0.1
        attempt.succeeded()


def test_attempts_that_wait_beside_each_other_count_at_once(delays: LoginDelays) -> None:
    """Whoever opens a thousand connections has no thousand attempts for the price of one."""
    fail(delays, FREE_FAILURES)
    waiting = [delays.begin("1.2.3.4", "ann").delay for _ in range(1000)]
    assert waiting[:5] == [0.1, 0.2, 0.4, 0.8, 1.0]
    assert set(waiting[5:]) == {1.0}


def test_many_names_wait_too(delays: LoginDelays) -> None:
    first = [delays.begin("1.2.3.4", f"user {number}").delay for number in range(FREE_FAILURES_OF_ADDRESS)]
    assert set(first) == {0}
    later = [delays.begin("1.2.3.4", f"another {number}").delay for number in range(10)]
    assert later == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert delays.begin("1.2.3.5", "another 1").delay == 0


def test_time_forgives(delays: LoginDelays, time: Time) -> None:
    assert fail(delays, FREE_FAILURES + 2)[-1] == 0.2
    time.seconds += FORGIVEN_AFTER
    assert delays.begin("1.2.3.4", "ann").delay == 0.2
    time.seconds += FORGIVEN_AFTER - 0.001
    assert delays.begin("1.2.3.4", "ann").delay == 0.4  # not forgiven wholly
    time.seconds += FORGIVEN_AFTER + 0.001
    time.seconds += FORGIVEN_AFTER
    assert delays.begin("1.2.3.4", "ann").delay == 0.1
    fail(delays, 1000)
    time.seconds += (KEPT_FAILURES + 1) * FORGIVEN_AFTER
    assert fail(delays, 2) == [0, 0.1]


def test_the_table_is_bounded(delays: LoginDelays) -> None:
    fail(delays, 100, user="first")
    for number in range(3 * MAX_ENTRIES):
        delays.begin(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", "x" * 100_000)
        if number % 1000 == 0:
            delays.begin("1.2.3.4", "first")  # who goes on is not forgotten
    assert len(delays) == MAX_ENTRIES
    assert delays.begin("1.2.3.4", "first").delay == 1.0


def test_of_long_names_the_beginning_counts(delays: LoginDelays) -> None:
    assert [delays.begin("1.2.3.4", "x" * 64 + str(number)).delay for number in range(6)][-1] == 0.1


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("127.0.0.1:3301", "127.0.0.1"),
        ("unix/:", "unix/"),
        (None, "unix/"),
        ("[2001:db8:1:2:3:4:5:6]:3301", "2001:db8:1:2::/64"),
        ("[fe80::1%eth0]:3301", "fe80::/64"),
        ("[::ffff:10.1.2.3]:3301", "10.1.2.3"),
        ("[::1]:3301", "::/64"),
    ],
)
def test_the_address_of_a_client(peer: str | None, address: str) -> None:
    assert address_of(peer) == address
