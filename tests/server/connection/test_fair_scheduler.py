"""The line of those who send more than can be done at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import perf_counter
from typing import cast

import msgpack
import pytest

from iproto_server.native._native import REQUESTS_AT_ONCE
from iproto_server.server.connection import fair_scheduler as module
from iproto_server.server.connection.connection import Connection
from iproto_server.server.connection.fair_scheduler import ALONE_AFTER, SHARE, SHARE_ALONE, FairScheduler
from tests.iproto_client import PING, REQUEST_TYPE, SYNC
from tests.server.in_process import ServerInProcess


class Busy:
    """A connection that has much to do, and notes its turns.

    Parameters:
        turns: the line.
        others_until: as long as it has had fewer turns, others are served, too.
    """

    def __init__(self, turns: FairScheduler, others_until: int) -> None:
        self.given: list[float] = []
        self._turns = turns
        self._others_until = others_until

    def take_turn(self, end: float) -> bool:
        self.given.append(end)
        self._turns.has_others = len(self.given) < self._others_until
        return len(self.given) < 8


def test_they_have_a_small_part_of_an_iteration_until_nobody_else_was_served_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 5.0
    monkeypatch.setattr(module, "perf_counter", lambda: now)

    class Slow(Busy):
        def take_turn(self, end: float) -> bool:
            nonlocal now
            more = super().take_turn(end - now)
            now = end
            if len(self.given) == 5:
                now += ALONE_AFTER
            return more

    async def give_turns() -> list[float]:
        turns = FairScheduler(lambda: None)
        turns.has_others = True
        busy = Slow(turns, others_until=3)
        turns.add(cast(Connection, busy))
        for _ in range(8):
            await asyncio.sleep(0)
        return busy.given

    given = asyncio.run(give_turns())
    assert given == pytest.approx([*[SHARE] * 5, *[SHARE_ALONE] * 3])


def test_they_have_a_large_one_from_the_beginning_when_they_are_the_only_ones() -> None:
    async def give_turns() -> list[float]:
        turns = FairScheduler(lambda: None)
        busy = Busy(turns, others_until=0)
        turns.add(cast(Connection, busy))
        begun = perf_counter()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return [end - begun for end in busy.given]

    assert asyncio.run(give_turns())[0] >= SHARE_ALONE


def test_whose_many_requests_had_to_wait_is_not_one_of_the_others_with_its_next_few(tmp_path: Path) -> None:
    with ServerInProcess(tmp_path, []) as running:
        turns = running.server.state.turns
        turns.begin = lambda: 0.0  # type: ignore[method-assign]  # there is never time at once
        client = running.connect()
        header = msgpack.packb({REQUEST_TYPE: PING, SYNC: 1})
        ping = msgpack.packb(len(header)) + header

        async def served_at_once() -> bool:
            seen, turns.has_others = turns.has_others, False
            return seen

        client.send_bytes(ping * (REQUESTS_AT_ONCE + 1))
        for _ in range(REQUESTS_AT_ONCE + 1):
            assert client.receive().ok
        running.run(served_at_once())
        seen = []
        for _ in range(3):
            assert client.request(PING).ok
            seen.append(running.run(served_at_once()))
        assert seen == [False, True, True]
