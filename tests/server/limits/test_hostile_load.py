"""Clients that behave notice nothing of those that do not; `make bench-misbehaviour` says how little."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.client.hostile_clients import CONDUCTS, Offenders
from bench.client.hostile_strangers import STRANGERS
from bench.client.steady_clients import SteadyClients
from bench.lib.graphite_counters import CounterReceiver
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import QUEUE_APPLICATION, RunningServer
from tests.server.limits.test_limits import MEBIBYTE, resident_bytes

GOOD = 90
BAD = 10
SECONDS = 3.0
TASKS = 500
"""So many tasks are there from the beginning: whoever takes one finds one, whatever others have taken."""

WRITE_HIGH_WATER = 256 * 1024
PER_OFFENDER = 4 * MEBIBYTE
"""What is received of one's request, or waits to be sent to one, and what that leaves behind."""


@pytest.mark.slow
@pytest.mark.alone
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


STRANGER_COUNT = 40
PER_STRANGER = MEBIBYTE
LINES = 100
LOGIN = ("alice", "secret")


def create_user(server: RunningServer) -> None:
    """Give a server a user who may do everything with its queue, and stop it."""
    user, password = LOGIN
    with IprotoClient.at(server.address) as client:
        client.call("box.session.su", "admin")
        assert client.call("box.schema.user.create", user, {"password": password}).ok
        assert client.call("box.schema.user.grant", user, "read,write,execute", "universe").ok
    server.stop()


@pytest.mark.slow
@pytest.mark.alone
def test_strangers_cost_little_memory_and_few_lines_and_are_counted(
    start_server: StartServer, tmp_path: Path
) -> None:
    create_user(start_server([QUEUE_APPLICATION], work_dir=tmp_path))
    with CounterReceiver() as counters:
        options = ["--guest", "none", "--graphite", counters.address, "--graphite-interval", "0.2"]
        server = start_server([QUEUE_APPLICATION], options, work_dir=tmp_path)
        address = (server.host, server.port)
        with SteadyClients(address, GOOD, interval=0.5, login=LOGIN) as good:
            assert not good.run(1).errors
            before, lines = resident_bytes(server.process.pid), server.process.output.count("\n")
            with Offenders(address, STRANGER_COUNT, conducts=STRANGERS) as strangers:
                times = good.run(SECONDS)
                seen = strangers.done()
                most = resident_bytes(server.process.pid)
            counted = counters.values()
        assert times.errors == []
        assert set(STRANGERS) <= seen.keys()
        assert most - before < STRANGER_COUNT * PER_STRANGER
        assert server.process.output.count("\n") - lines < LINES
        # A client that is refused while it still sends may not see that, so the server counts more.
        prefix = "queue.stats.server"
        too_large = seen["refused: half frames of 100 MB"] + seen["refused: AUTH of 19 MB"]
        assert counted[f"{prefix}.refused.max_frame_before_login"] >= too_large
        assert counted[f"{prefix}.refused.max_frame_before_login"] > STRANGER_COUNT
        assert counted[f"{prefix}.logins.failed"] >= seen["refused: wrong passwords"] > 0
        assert counted[f"{prefix}.logins.delayed"] > 0
        server.stop()
