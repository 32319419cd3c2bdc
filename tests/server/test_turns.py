"""The line of those who send more than can be done at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import msgpack
import pytest

from iproto_server.server import turns as module
from iproto_server.server.connection import Connection
from iproto_server.server.turns import AT_ONCE, SHARE, SHARE_ALONE, Turns
from tests.iproto_client import PING, REQUEST_TYPE, SYNC
from tests.server.in_process import ServerInProcess


class Busy:
    """A connection that has much to do, and notes its turns.

    Args:
        turns: The line.
        others_until: As long as it has had fewer turns, others are served, too.
    """

    def __init__(self, turns: Turns, others_until: int) -> None:
        self.given: list[float] = []
        self._turns = turns
        self._others_until = others_until

    def take_turn(self, end: float) -> bool:
        self.given.append(end)
        self._turns.has_others = len(self.given) < self._others_until
        return len(self.given) < 8


def test_they_have_a_small_part_of_an_iteration_and_a_larger_one_when_nobody_else_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(module, "perf_counter", lambda: now)

    class Slow(Busy):
        def take_turn(self, end: float) -> bool:
            nonlocal now
            more = super().take_turn(end - now)
            now = end
            return more

    async def give_turns() -> list[float]:
        turns = Turns(lambda: None)
        turns.has_others = True
        busy = Slow(turns, others_until=3)
        turns.add(cast(Connection, busy))
        for _ in range(8):
            await asyncio.sleep(0)
        return busy.given

    given = asyncio.run(give_turns())
    assert given[:3] == pytest.approx([SHARE, SHARE, SHARE])
    assert given[3:6] == pytest.approx([2 * SHARE, 4 * SHARE, SHARE_ALONE])
    assert max(given) == pytest.approx(SHARE_ALONE)


def test_whose_many_requests_had_to_wait_is_not_one_of_the_others_with_its_next_few(tmp_path: Path) -> None:
    with ServerInProcess(tmp_path, []) as running:
        turns = running.server.turns
        turns.begin = lambda: 0.0  # type: ignore[method-assign]  # there is never time at once
        client = running.connect()
        header = msgpack.packb({REQUEST_TYPE: PING, SYNC: 1})
        ping = msgpack.packb(len(header)) + header

        async def served_at_once() -> bool:
            seen, turns.has_others = turns.has_others, False
            return seen

        client.send_bytes(ping * (AT_ONCE + 1))
        for _ in range(AT_ONCE + 1):
            assert client.receive().ok
        running.run(served_at_once())
        seen = []
        for _ in range(3):
            assert client.request(PING).ok
            seen.append(running.run(served_at_once()))
        assert seen == [False, True, True]
