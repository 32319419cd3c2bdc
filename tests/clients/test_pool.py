"""tarantool-python's connections to several servers: ConnectionPool and MeshConnection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import tarantool
from tarantool import Mode
from tarantool.error import ClusterConnectWarning, NotSupportedError, PoolTolopogyError

from tests.clients.applications.accounts import PASSWORD, USER
from tests.clients.conftest import APPLICATIONS, OURS
from tests.clients.drivers.connections import with_python
from tests.clients.drivers.driver import Target
from tests.conftest import StartServer
from tests.running_server import RunningServer

WRITING = [Mode.RW, Mode.PREFER_RW]
READING = [Mode.RO, Mode.PREFER_RO]
NOBODY = Target("nobody", "127.0.0.1", 1)


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Start a read-only server."""
    with RunningServer(tmp_path_factory.mktemp("replica"), APPLICATIONS, ["--read-only"]) as server:
        yield Target(OURS, server.host, server.port)


@pytest.fixture(scope="module")
def pool(our_server: Target, replica: Target) -> Iterator[tarantool.ConnectionPool]:
    """Create a pool of a writable and a read-only server."""
    with new_pool(our_server, replica) as pool:
        yield pool


def new_pool(*targets: Target, **options: Any) -> closing[tarantool.ConnectionPool]:
    """Create a pool that closes quickly: after at most one interval between its checks of the servers."""
    options = {"refresh_delay": 0.05, **options}
    return closing(tarantool.ConnectionPool([address(target) for target in targets], **options))


def address(target: Target) -> dict[str, Any]:
    return {"host": target.host, "port": target.port}


def instance(connection: Any, **mode: Mode) -> str:
    """Return the UUID of the server that answers."""
    return str(connection.call("box.info", **mode)[0]["uuid"])


def instance_of(target: Target) -> str:
    with with_python(target) as connection:
        return instance(connection)


def instance_that_answers(pool: tarantool.ConnectionPool) -> str | None:
    """Return the UUID of a server of some mode; None until the pool has noticed that one is gone."""
    try:
        return instance(pool, mode=Mode.PREFER_RW)
    except tarantool.NetworkError:
        return None


class TestPool:
    def test_finds_who_may_be_written_to(
        self, pool: tarantool.ConnectionPool, our_server: Target, replica: Target
    ) -> None:
        writer, reader = instance_of(our_server), instance_of(replica)
        assert [instance(pool, mode=mode) for mode in WRITING * 2] == [writer] * 4
        assert [instance(pool, mode=mode) for mode in READING * 2] == [reader] * 4

    def test_takes_turns_with_any(
        self, pool: tarantool.ConnectionPool, our_server: Target, replica: Target
    ) -> None:
        both = [instance_of(our_server), instance_of(replica)]
        assert [instance(pool, mode=Mode.ANY) for _ in range(4)] == both * 2

    def test_has_the_requests_of_a_connection(self, pool: tarantool.ConnectionPool, our_values: str) -> None:
        assert pool.insert(our_values, [1, "a"])[0] == [1, "a"]
        assert pool.replace(our_values, [1, "b"])[0] == [1, "b"]
        assert pool.update(our_values, 1, [("=", "value", "c")])[0] == [1, "c"]
        assert pool.upsert(our_values, [1, "x"], [("=", "value", "d")]).data == []
        assert pool.select(our_values, 1, mode=Mode.RW)[0] == [1, "d"]
        assert pool.delete(our_values, 1)[0] == [1, "d"]
        assert pool.ping(mode=Mode.ANY) > 0
        assert pool.call("features.echo", [1, "two"], mode=Mode.RO).data == [1, "two"]

    def test_hands_pushed_messages_over(self, pool: tarantool.ConnectionPool) -> None:
        heard: list[object] = []
        pool.call("features.push", [1, 2], mode=Mode.ANY, on_push=lambda message, _: heard.append(message))
        assert heard == [[1], [2]]

    def test_a_change_sent_to_the_wrong_one_is_refused(self, pool: tarantool.ConnectionPool) -> None:
        with pytest.raises(tarantool.DatabaseError) as raised:
            pool.call("box.schema.create_space", ["no"], mode=Mode.RO)
        assert raised.value.args == (7, "Can't modify data because this instance is in read-only mode.")
        assert pool.ping(mode=Mode.RO) > 0

    def test_raises_the_servers_errors(self, pool: tarantool.ConnectionPool) -> None:
        with pytest.raises(tarantool.DatabaseError) as raised:
            pool.call("features.fail_for_a_reason", mode=Mode.ANY)
        assert raised.value.args == (1000, "it cannot be stored")
        with pytest.raises(ValueError, match="specify 'mode'"):
            pool.call("box.info")

    def test_of_readers_only_has_nobody_to_write_to(self, replica: Target) -> None:
        with new_pool(replica) as pool:
            with pytest.raises(PoolTolopogyError, match="Can't find healthy rw instance in pool"):
                pool.ping(mode=Mode.RW)
            assert pool.ping(mode=Mode.PREFER_RW) > 0

    def test_logs_in(self, our_server: Target) -> None:
        with new_pool(our_server, user=USER, password=PASSWORD) as pool:
            assert pool.call("box.session.user", mode=Mode.RW).data == [USER]

    def test_has_no_schema_when_that_is_not_wanted(self, our_server: Target) -> None:
        with new_pool(our_server, fetch_schema=False) as pool:
            assert pool.call("features.echo", [1], mode=Mode.ANY).data == [1]
            with pytest.raises(NotSupportedError, match="fetch_schema=False"):
                pool.select("_space", [], mode=Mode.ANY)

    @pytest.mark.filterwarnings("ignore")  # it warns at every attempt to connect
    def test_goes_on_with_those_that_are_left_and_finds_who_comes_back(
        self, start_server: StartServer, replica: Target, tmp_path: Path
    ) -> None:
        server = start_server(APPLICATIONS, work_dir=tmp_path)
        writer = Target(OURS, server.host, server.port)
        with new_pool(writer, replica) as pool:
            here, there = instance_of(writer), instance_of(replica)
            assert instance(pool, mode=Mode.PREFER_RW) == here
            server.stop()
            while instance_that_answers(pool) != there:
                pass
            start_server(APPLICATIONS, listen=writer.address, work_dir=tmp_path)
            while instance_that_answers(pool) != here:
                pass

    @pytest.mark.filterwarnings("ignore")
    def test_tells_of_who_does_not_answer(self, replica: Target) -> None:
        with pytest.warns(ClusterConnectWarning, match="Failed to connect to 127.0.0.1:1"):
            nobody_else = new_pool(NOBODY, replica)
        with nobody_else as pool:
            assert pool.ping(mode=Mode.ANY) > 0


@pytest.mark.filterwarnings("ignore:got ")  # it repeats the query with every request, and warns
class TestMesh:
    def test_connects_to_the_next_when_one_does_not_answer(self, our_server: Target) -> None:
        with closing(
            tarantool.MeshConnection(addrs=[address(NOBODY), address(our_server)], connect_now=False)
        ) as mesh:
            assert instance(mesh) == instance_of(our_server)

    @pytest.mark.filterwarnings("ignore")  # it warns at every attempt to connect
    def test_moves_to_the_next_when_its_server_stops(
        self, start_server: StartServer, replica: Target
    ) -> None:
        server = start_server(APPLICATIONS)
        first = {"host": server.host, "port": server.port}
        with closing(
            tarantool.MeshConnection(
                addrs=[first, address(replica)], reconnect_max_attempts=0, reconnect_delay=0
            )
        ) as mesh:
            assert instance(mesh) != instance_of(replica)
            server.stop()
            assert instance(mesh) == instance_of(replica)

    def test_asks_who_else_there_is(self, our_server: Target, replica: Target) -> None:
        for target in (our_server, replica):
            with with_python(target) as admin:
                admin.call("features.set_nodes", [[replica.address]])
        with closing(
            tarantool.MeshConnection(
                our_server.host,
                our_server.port,
                cluster_discovery_function="features.nodes",
                cluster_discovery_delay=0,
            )
        ) as mesh:
            # the server that was asked is not among them
            assert instance(mesh) == instance_of(replica)
            assert [(each["host"], each["port"]) for each in mesh.strategy.addrs] == [
                (replica.host, replica.port)
            ]

    def test_stays_where_it_is_when_the_answer_is_no_list(self, our_server: Target) -> None:
        with pytest.warns(tarantool.error.ClusterDiscoveryWarning, match="incorrect response"):
            mesh = tarantool.MeshConnection(
                our_server.host, our_server.port, cluster_discovery_function="box.info"
            )
        with closing(mesh):
            assert instance(mesh) == instance_of(our_server)

    def test_stays_where_it_is_when_there_is_no_such_function(self, our_server: Target) -> None:
        with pytest.warns(tarantool.error.ClusterDiscoveryWarning, match="is not defined"):
            mesh = tarantool.MeshConnection(
                our_server.host, our_server.port, cluster_discovery_function="no.such.function"
            )
        with closing(mesh):
            assert mesh.ping() > 0
