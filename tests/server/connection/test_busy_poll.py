"""The loop looks for the next request before it sleeps, while that is worth it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import pytest

from iproto_server.server.connection.busy_poll import MICROSECONDS, BusyPoll, usual_microseconds
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import QUEUE_APPLICATION

SECONDS = MICROSECONDS / 1e6


class Loop:
    """A loop that runs what is to be called soon when it is told to."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []
        self.time = 0.0

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def iterate(self, seconds: float = 0.0) -> bool:
        """Run an iteration after some time. Returns whether the next one only looks at the sockets."""
        self.time += seconds
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()
        return bool(self.soon)


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    loop = Loop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    return loop


@pytest.fixture
def poll(loop: Loop) -> BusyPoll:
    return BusyPoll(MICROSECONDS, lambda: loop.time)


def looks(poll: BusyPoll, loop: Loop) -> bool:
    """Whether the loop looks for requests after it has worked."""
    poll.worked()
    return bool(loop.soon)


def test_the_loop_looks_for_a_while_after_it_has_worked(poll: BusyPoll, loop: Loop) -> None:
    assert looks(poll, loop)
    assert loop.iterate(0.6 * SECONDS)
    assert not loop.iterate(0.6 * SECONDS)


def test_requests_that_are_found_prolong_it(poll: BusyPoll, loop: Loop) -> None:
    poll.worked()
    for _ in range(10):
        assert loop.iterate(0.6 * SECONDS)
        poll.worked()
    assert len(loop.soon) == 1
    assert not loop.iterate(1.1 * SECONDS)


def test_it_looks_more_seldom_the_more_often_it_finds_nothing(poll: BusyPoll, loop: Loop) -> None:
    slept = []
    for _ in range(11):
        times = 0
        while not looks(poll, loop):
            times += 1
        slept.append(times)
        assert not loop.iterate(1.1 * SECONDS)
    assert slept == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 256]


def test_success_makes_it_look_more_often_again(poll: BusyPoll, loop: Loop) -> None:
    for _ in range(9):
        while not looks(poll, loop):
            pass
        loop.iterate(1.1 * SECONDS)
    while not looks(poll, loop):
        pass
    for _ in range(20):
        poll.worked()
    loop.iterate(1.1 * SECONDS)
    assert [looks(poll, loop), looks(poll, loop)] == [False, True]


def test_zero_turns_it_off(loop: Loop) -> None:
    assert not looks(BusyPoll(0), loop)


@pytest.mark.parametrize(("processors", "microseconds"), [({0}, 0), ({0, 1}, MICROSECONDS)])
def test_a_single_processor_is_left_to_the_clients(
    monkeypatch: pytest.MonkeyPatch, processors: set[int], microseconds: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: processors)
    assert usual_microseconds() == microseconds


@pytest.mark.parametrize("microseconds", ["0", "1000"])
@pytest.mark.parametrize("wal_mode", ["none", "write", "fsync"])
def test_a_server_answers_with_and_without_it(
    start_server: StartServer, microseconds: str, wal_mode: str
) -> None:
    options = ["--busy-poll", microseconds, "--wal-mode", wal_mode]
    with IprotoClient.at(start_server([QUEUE_APPLICATION], options).address) as client:
        for number in range(50):
            assert client.call("queue.put", number).ok
            [task] = client.call("queue.take").data
            assert client.call("queue.ack", task["id"]).data[0]["data"] == number
