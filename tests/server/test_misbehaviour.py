"""Clients that behave notice nothing of those that do not; `make bench-misbehaviour` says how little."""

from __future__ import annotations

import pytest

from bench.misconduct import CONDUCTS, Offenders
from bench.steady import SteadyClients
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import QUEUE_APPLICATION
from tests.server.test_limits import MEBIBYTE, resident_bytes

GOOD = 90
BAD = 10
SECONDS = 3.0
TASKS = 500
"""So many tasks are there from the beginning: whoever takes one finds one, whatever others have taken."""

WRITE_HIGH_WATER = 256 * 1024
PER_OFFENDER = 4 * MEBIBYTE
"""What is received of one's request, or waits to be sent to one, and what that leaves behind."""


@pytest.mark.slow
def test_nobody_who_behaves_has_an_error_and_memory_is_bounded(start_server: StartServer) -> None:
    server = start_server([QUEUE_APPLICATION], ["--write-high-water", str(WRITE_HIGH_WATER)])
    address = (server.host, server.port)
    with IprotoClient.at(server.address) as client, SteadyClients(address, GOOD, interval=0.5) as good:
        for number in range(TASKS):
            client.call("queue.put", number)
        assert not good.run(1).errors
        before = resident_bytes(server.process.pid)
        with Offenders(address, BAD) as offenders:
            times = good.run(SECONDS)
            done = offenders.done()
            most = resident_bytes(server.process.pid)
        assert times.errors == []
        assert len(times.seconds) >= 3 * GOOD * SECONDS
        assert set(CONDUCTS) <= done.keys()
        assert most - before < BAD * PER_OFFENDER
        assert not good.run(1).errors
        # Tasks that were taken by those who are gone are there for others.
        stats = client.call("queue.stats").data[0]
        assert stats["total"] == TASKS
        assert stats["taken"] <= 3 * BAD
    assert " error " not in server.process.output
