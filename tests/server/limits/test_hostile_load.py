"""Hostile clients do not affect well-behaved ones; `make bench-misbehaviour` measures by how much."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.client.hostile_clients import ATTACKS, HostileClients
from bench.client.steady_clients import SteadyClients
from bench.client.unauthenticated_clients import ATTACKS_BEFORE_LOGIN
from bench.lib.graphite_counters import CounterReceiver
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import QUEUE_APPLICATION, RunningServer
from tests.server.limits.test_limits import MEBIBYTE, resident_bytes

GOOD = 90
BAD = 10
SECONDS = 3.0
TASKS = 500
"""Tasks that exist from the beginning, so that every take finds one."""

WRITE_HIGH_WATER = 256 * 1024
PER_HOSTILE_CLIENT = 4 * MEBIBYTE
"""Bytes of a client's unfinished request or unsent answers, and of the memory they leave behind."""


@pytest.mark.slow
@pytest.mark.alone
def test_well_behaved_clients_have_no_errors_and_memory_is_bounded(start_server: StartServer) -> None:
    server = start_server([QUEUE_APPLICATION], ["--write-high-water", str(WRITE_HIGH_WATER)])
    address = (server.host, server.port)
    with IprotoClient.at(server.address) as client, SteadyClients(address, GOOD, interval=0.5) as good:
        for number in range(TASKS):
            client.call("queue.put", number)
        assert not good.run(1).errors
        before = resident_bytes(server.process.pid)
        with HostileClients(address, BAD) as hostile:
            times = good.run(SECONDS)
            done = hostile.done()
            most = resident_bytes(server.process.pid)
        assert times.errors == []
        assert len(times.seconds) >= 3 * GOOD * SECONDS
        assert set(ATTACKS) <= done.keys()
        assert most - before < BAD * PER_HOSTILE_CLIENT
        assert not good.run(1).errors
        # Tasks taken by disconnected clients are released.
        stats = client.call("queue.stats").data[0]
        assert stats["total"] == TASKS
        assert stats["taken"] <= 3 * BAD
    assert " error " not in server.process.output


UNAUTHENTICATED_COUNT = 40
PER_UNAUTHENTICATED_CLIENT = MEBIBYTE
LINES = 100
LOGIN = ("alice", "secret")


def create_user(server: RunningServer) -> None:
    """Create a user with all rights on a server, and stop the server."""
    user, password = LOGIN
    with IprotoClient.at(server.address) as client:
        client.call("box.session.su", "admin")
        assert client.call("box.schema.user.create", user, {"password": password}).ok
        assert client.call("box.schema.user.grant", user, "read,write,execute", "universe").ok
    server.stop()


@pytest.mark.slow
@pytest.mark.alone
def test_unauthenticated_clients_cost_little_memory_and_few_lines_and_are_counted(
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
            with HostileClients(address, UNAUTHENTICATED_COUNT, attacks=ATTACKS_BEFORE_LOGIN) as clients:
                times = good.run(SECONDS)
                seen = clients.done()
                most = resident_bytes(server.process.pid)
            counted = counters.values()
        assert times.errors == []
        assert set(ATTACKS_BEFORE_LOGIN) <= seen.keys()
        assert most - before < UNAUTHENTICATED_COUNT * PER_UNAUTHENTICATED_CLIENT
        assert server.process.output.count("\n") - lines < LINES
        # A client refused while it is still sending may not notice, so the server counts more.
        prefix = "queue.stats.server"
        too_large = seen["refused: half frames of 100 MB"] + seen["refused: AUTH of 19 MB"]
        assert counted[f"{prefix}.refused.max_frame_before_login"] >= too_large
        assert counted[f"{prefix}.refused.max_frame_before_login"] > UNAUTHENTICATED_COUNT
        assert counted[f"{prefix}.logins.failed"] >= seen["refused: wrong passwords"] > 0
        assert counted[f"{prefix}.logins.delayed"] > 0
        server.stop()
