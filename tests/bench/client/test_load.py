"""The load does what the figures say it does, with each of those who are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.client.connection import Connection
from bench.client.load import Load
from bench.client.requests import payloads
from bench.peers.beanstalkd import Beanstalkd
from bench.peers.contender import Contender, Server
from bench.peers.database import DatabaseServer, Ours, Tarantool
from bench.peers.iproto import IPROTO, IprotoConnection
from bench.peers.redis import Redis
from bench.scenarios.queues.delivery import Traffic, deliver
from bench.scenarios.queues.throughput import SECTION
from bench.scenarios.queues.throughput import rates as queue_rates
from bench.scenarios.raw_rows import OPERATIONS
from bench.scenarios.raw_rows import rates as raw_rates
from bench.scenarios.storage.backlog import FULL, put_backlog
from bench.scenarios.storage.backlog import rates as standing_rates
from bench.workloads.rate import Setting, Shape
from tests.programs import require_program

REAL = pytest.mark.real_tarantool
DATABASES = ["ours", pytest.param("tarantool", marks=REAL)]
EVERYBODY = [*DATABASES, "beanstalkd", "redis"]

MAKERS: dict[str, Callable[[], Contender]] = {
    "ours": Ours,
    "tarantool": lambda: Tarantool(require_program("tarantool", "tarantool")),
    "beanstalkd": lambda: Beanstalkd(require_program("beanstalkd", "beanstalkd")),
    "redis": lambda: Redis(require_program("redis-server", "redis-server")),
}


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A contender that serves."""
    with Server(MAKERS[request.param](), tmp_path / "data") as server:
        yield server


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DatabaseServer]:
    """One that speaks IPROTO."""
    contender = MAKERS[request.param]()
    assert isinstance(contender, Ours | Tarantool)
    with DatabaseServer(contender, tmp_path / "data") as server:
        yield server


everybody = pytest.mark.parametrize("server", EVERYBODY, indirect=True)
databases = pytest.mark.parametrize("database", DATABASES, indirect=True)


@databases
def test_tasks_are_put_taken_and_acknowledged(database: DatabaseServer) -> None:
    with database.load(3, 4) as load:
        load.ping(25)
        load.put(25)
        assert database.count() == 25
        load.take(20)
        statistics = {"total": 25, "ready": 5, "waiting": 0, "taken": 20}
        assert database.connection.call("queue.stats") == [statistics]
        load.ack()
        assert database.count() == 5


@everybody
def test_every_request_is_answered_and_timed(server: Server) -> None:
    for connections, in_flight in ((1, 1), (3, 1), (2, 100)):
        for size in (16, 100, 10_240):
            with server.load(connections, in_flight) as load:
                phases = [load.ping(250), load.put(250, size), load.take(250), load.ack()]
            for phase in phases:
                assert phase.requests == len(phase.latencies) == 250
                assert 0 < max(phase.latencies.together)[0] <= phase.seconds
                assert phase.cpu_seconds > 0


@everybody
def test_a_take_that_brings_no_task_is_a_failure(server: Server) -> None:
    with server.load(2, 1) as load:
        load.put(2)
        with pytest.raises(RuntimeError, match="1 of 3 requests failed"):
            load.take(3)


@everybody
def test_a_task_is_acknowledged_once(server: Server) -> None:
    dialect = server.contender.dialect
    with Connection(server.address, dialect) as connection:
        assert dialect.done_in(connection.ask(dialect.puts([b"0123456789abcdef"]))) == 1
        tasks = dialect.tasks_in(connection.ask(dialect.takes(1)))
        assert len(tasks) == 1
        assert dialect.done_in(connection.ask(dialect.acks(tasks))) == 1
        assert dialect.done_in(connection.ask(dialect.acks(tasks))) == 0


@everybody
def test_a_take_may_wait_in_vain(server: Server) -> None:
    dialect = server.contender.dialect
    with Connection(server.address, dialect) as connection:
        assert dialect.tasks_in(connection.ask(dialect.takes(1, timeout=1))) == []


@everybody
def test_tasks_with_a_delay_come_later(server: Server) -> None:
    with server.load(2, 10) as load:
        if not server.contender.has_delays:
            with pytest.raises(ValueError, match="lists have no delays"):
                load.put(20, delay=1)
            return
        load.put(20, delay=1)
        with pytest.raises(RuntimeError, match="20 of 20 requests failed"):
            load.take(20)
        load.take(20, timeout=30)
        load.ack()


@everybody
def test_waiting_consumers_get_all_tasks(server: Server) -> None:
    delivery = deliver(server, Traffic(per_second=500, seconds=0.2, consumers=5), round_number=3)
    assert (delivery.contender, delivery.round, delivery.tasks) == (server.name, 3, 100)
    assert 0 < delivery.latencies_ms[0] <= delivery.latencies_ms[1] <= delivery.latencies_ms[2]
    assert delivery.server_us > 0


@everybody
def test_a_cycle_is_the_sum_of_its_parts(server: Server) -> None:
    ping, put, take, ack, cycle = queue_rates(Setting(server, SECTION, Shape(2, 5), 1, 16), 100)
    assert [each.operation for each in (ping, put, take, ack, cycle)] == [
        "ping",
        "put",
        "take",
        "ack",
        "cycle",
    ]
    assert cycle.server_us == pytest.approx(put.server_us + take.server_us + ack.server_us)
    assert 1 / cycle.per_second == pytest.approx(
        1 / put.per_second + 1 / take.per_second + 1 / ack.per_second
    )
    assert (put.shape, put.payload, put.round, put.requests) == ("2 × 5", 16, 1, 100)
    assert put.peak > 2**20
    assert cycle.latencies_ms is None


@everybody
def test_standing_tasks_stay_when_others_are_taken(server: Server) -> None:
    footprint = put_backlog(server, 5000)
    assert footprint.tasks == 5000
    assert min(footprint.before, footprint.after) > 2**20
    measured = standing_rates(Setting(server, FULL, Shape(2, 10)), 500)
    assert [each.operation for each in measured] == ["take", "ack", "cycle"]
    with server.load(1, 100) as load:
        load.take(5000)


@everybody
def test_snapshots_are_taken_by_those_who_have_them(server: Server) -> None:
    with server.load(1, 1) as load:
        load.put(1)
    if server.contender.has_snapshots:
        server.contender.snapshot(server.address)
        server.contender.snapshot(server.address)
    else:
        with pytest.raises(NotImplementedError):
            server.contender.snapshot(server.address)


@databases
def test_single_rows_are_measured_in_a_space_that_is_gone_then(database: DatabaseServer) -> None:
    for number in range(2):
        measured = list(raw_rates(Setting(database, "raw", Shape(2, 10), number), 100))
        assert [each.operation for each in measured] == list(OPERATIONS)
        assert {each.requests for each in measured} == {100}
    assert database.connection.call("box.space._space:select", [600]) == [[]]


@databases
def test_a_call_that_fails_says_why(database: DatabaseServer) -> None:
    with pytest.raises(RuntimeError, match=r"^queue\.ack: .*Task \{7\} was not found$"):
        database.connection.call("queue.ack", 7)


@databases
def test_answers_of_different_lengths_are_all_counted(database: DatabaseServer) -> None:
    ids = [b"\xcf" + number.to_bytes(8, "big") for number in range(10)]
    with Load(database.address, IPROTO, 1, 100) as load:
        load.put(200)
        load.take(200)
        load._taken[0][100:100] = ids
        with pytest.raises(RuntimeError, match="10 of 210 requests failed"):
            load.ack()
    assert database.count() == 0


@databases
def test_a_start_finds_the_tasks(database: DatabaseServer, tmp_path: Path) -> None:
    with database.load(1, 10) as load:
        load.put(30)
    database.stop()
    contender = database.contender
    assert isinstance(contender, Ours | Tarantool)
    with DatabaseServer(contender, tmp_path / "data", has_queue=False) as server:
        assert server.tasks == 30
        assert 0 < server.recovered_in < server.started_in
        assert server.started_cpu > 0


def test_more_is_sent_when_the_server_takes_more(tmp_path: Path) -> None:
    # More than the system keeps for a connection: neither side may wait for the other to read.
    with Server(Ours(), tmp_path / "data") as server, server.load(1, 2000) as load:
        load.put(2000, 10_240)
        load.take(2000)
        load.ack()


def test_payloads_are_all_different() -> None:
    made = payloads(1000, 16)
    assert len(set(made)) == 1000
    assert {len(payload) for payload in made} == {16}


def test_a_call_has_values(tmp_path: Path) -> None:
    with Server(Ours(), tmp_path / "data") as server, IprotoConnection(server.address) as connection:
        assert connection.call("queue.put", "data")[0]["data"] == "data"
