"""Tubes in applications: callbacks, and drivers for new types."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import Application, Box, BoxError, Tuple
from queue_lua_compat.tubes.driver import Drivers, Options, TubeDriver
from queue_lua_compat.tubes.drivers.fifo import FifoDriver, next_id
from queue_lua_compat.tubes.procedures import Procedures
from queue_lua_compat.tubes.queue import Queue
from tests.queue_lua_compat.tubes.tubes_server import Client, TubesServer


class Notes:
    """A callback that records its calls."""

    def __init__(self) -> None:
        self.notes: list[tuple[list[Any] | None, str | None]] = []

    def __call__(self, task: Tuple | None, event: str | None) -> None:
        self.notes.append((None if task is None else list(task), event))


class TestOnTaskChange:
    def test_it_is_told_of_every_change(self, server: TubesServer, client: Client) -> None:
        notes = Notes()
        create(server, "jobs", {"on_task_change": notes})
        client.call("queue.tube.jobs:put", "x")
        client.call("queue.tube.jobs:take")
        client.call("queue.tube.jobs:release", 0)
        client.call("queue.tube.jobs:bury", 0)
        client.call("queue.tube.jobs:kick")
        client.call("queue.tube.jobs:delete", 0)
        assert notes.notes == [
            ([0, "r", "x"], "put"),
            ([0, "t", "x"], "take"),
            ([0, "r", "x"], "release"),
            ([0, "!", "x"], "bury"),
            ([0, "r", "x"], "kick"),
            ([0, "-", "x"], "delete"),
        ]

    def test_it_is_replaced_and_the_one_before_answered(self, server: TubesServer, client: Client) -> None:
        first, second = Notes(), Notes()
        create(server, "jobs", {"on_task_change": first})
        jobs = server.tube("jobs")
        assert jobs.on_task_change(second) is first
        client.call("queue.tube.jobs:put", "x")
        assert jobs.on_task_change() is second
        client.call("queue.tube.jobs:put", "y")
        assert (len(first.notes), len(second.notes)) == (0, 1)

    def test_what_it_raises_undoes_the_change(self, server: TubesServer, client: Client) -> None:
        def refuse(task: Tuple | None, event: str | None) -> None:
            raise BoxError.procedure("no")

        create(server, "jobs", {"on_task_change": refuse})
        assert client.refused("queue.tube.jobs:put", "x") == "no"
        assert server.rows("jobs") == []

    def test_clients_name_it(self, server: TubesServer, client: Client) -> None:
        notes = Notes()
        server.queue.task_callback("note")(notes)
        client.call("queue.create_tube", "jobs", "fifo", {"on_task_change": "note"})
        client.call("queue.tube.jobs:put", "x")
        assert notes.notes == [([0, "r", "x"], "put")]
        assert server.rows("_queue")[0][4] == {"if_not_exists": False}

    def test_there_must_be_one_of_that_name(self, client: Client) -> None:
        error = client.refused("queue.create_tube", "jobs", "fifo", {"on_task_change": "nosuch"})
        assert error == "there is no function nosuch for on_task_change"
        assert client.call("queue.tube", "jobs") is False

    def test_a_setup_sets_it_for_a_tube_that_is_there(self, server: TubesServer, client: Client) -> None:
        create(server, "jobs", {})
        server.restart()
        notes = Notes()
        create(server, "jobs", {"if_not_exists": True, "on_task_change": notes})
        server.connect().call("queue.tube.jobs:put", "x")
        assert notes.notes == [([0, "r", "x"], "put")]


def create(server: TubesServer, name: str, options: Options, kind: str = "fifo") -> None:
    """Create a tube, as an application's setup does."""
    server.as_server(server.queue.create_tube, name, kind, options)


class LifoDriver(FifoDriver):
    """The newest task comes first."""

    def put(self, data: object, options: Options) -> Tuple:
        """Store a new task."""
        task = self.space.insert([next_id(self.space), "r", data])
        self.on_task_change(task, "put")
        return task

    def take(self) -> Tuple | None:
        """Take the ready task with the greatest id."""
        newest = self.space.index["status"].max(["r"])
        if newest is None:
            return None
        task = self.space.update([newest[0]], [("=", 1, "t")])
        self.on_task_change(task, "take")
        return task


class TestOwnDrivers:
    def test_tubes_of_an_own_type_are_used_as_others(self, server: TubesServer, client: Client) -> None:
        server.queue.register_driver("lifo", LifoDriver)
        client.call("queue.create_tube", "stack", "lifo")
        for data in "ab":
            client.call("queue.tube.stack:put", data)
        assert client.call("queue.tube.stack:take") == [1, "t", "b"]
        assert client.call("queue.tube.stack:ack", 1) == [1, "-", "b"]

    def test_tubes_wait_for_their_driver(self, server: TubesServer, client: Client) -> None:
        server.queue.register_driver("lifo", LifoDriver)
        client.call("queue.create_tube", "stack", "lifo")
        client.call("queue.tube.stack:put", "x")
        client.call("queue.tube.stack:take")
        server.restart()
        assert server.connect().call("queue.tube", "stack") is False
        server.as_server(server.queue.register_driver, "lifo", LifoDriver)
        assert server.states("stack") == {"x": "r"}
        assert server.connect().call("queue.tube.stack:take") == [0, "t", "x"]

    def test_a_driver_may_be_registered_before_the_start(self) -> None:
        application, drivers = Application("tubes"), Drivers()
        queue = Queue(application, drivers)
        Procedures(application, queue)
        queue.register_driver("lifo", LifoDriver)
        box = Box()
        for setup in application.setups:
            box.run(box.session.background, setup, box)
        assert box.run(box.session.background, queue.create_tube, "stack", "lifo") is queue.tube["stack"]

    def test_a_name_can_be_taken_once(self, server: TubesServer) -> None:
        with pytest.raises(BoxError, match='overriding registered driver "fifo"'):
            server.queue.register_driver("fifo", LifoDriver)

    def test_a_driver_is_a_class(self, server: TubesServer) -> None:
        with pytest.raises(BoxError, match="must contain functions"):
            server.queue.register_driver("other", object)  # type: ignore[arg-type]

    def test_a_driver_has_all_methods(self) -> None:
        with pytest.raises(TypeError, match="abstract"):
            TubeDriver(None, None, None, {})  # type: ignore[abstract, arg-type]

    def test_a_driver_may_have_no_grant_role(self, server: TubesServer, client: Client) -> None:
        class Plain(LifoDriver):
            """A driver without support for roles."""

            supports_grant_role = False

        server.queue.register_driver("plain", Plain)
        client.call("queue.create_tube", "jobs", "plain")
        server.as_server(server.box.schema.role.create, "worker")
        error = client.refused("queue.tube.jobs:grant_role", "worker")
        assert error == "Tube jobs driver does not support grant_role()"


class TestInPython:
    def test_an_application_works_with_tubes_within_its_own_transactions(
        self, server: TubesServer, client: Client
    ) -> None:
        create(server, "jobs", {})
        jobs = server.tube("jobs")

        def procedure() -> None:
            jobs.put("a")
            jobs.put("b", {"unknown": 1})
            task = jobs.take(0)
            assert isinstance(task, Tuple)
            jobs.ack(task[0])

        server.box.run(client.session, procedure)
        assert server.states("jobs") == {"b": "r"}

    def test_the_server_itself_has_a_session_too(self, server: TubesServer) -> None:
        create(server, "jobs", {})
        server.as_server(server.tube("jobs").put, "a")
        server.as_server(server.tube("jobs").take)
        assert server.as_server(server.tube("jobs").ack, 0) == [0, "-", "a"]

    def test_the_numbers_of_tasks_are_metrics(self, server: TubesServer, client: Client) -> None:
        create(server, "jobs", {})
        client.call("queue.tube.jobs:put", "x")
        (metrics,) = server.application.metric_sources
        counted = {"jobs.ready": 1, "jobs.taken": 0, "jobs.done": 0, "jobs.buried": 0, "jobs.delayed": 0}
        assert metrics(server.box) == counted

    def test_nil_options_are_none(self, server: TubesServer, client: Client) -> None:
        """In the module's own server, a nil from the wire is a value that might have options."""
        create(server, "timed", {}, "fifottl")
        assert client.call("queue.tube.timed:put", "x", None) == [0, "r", "x"]
        assert client.call("queue.tube.timed:take", None) == [0, "t", "x"]
        assert client.call("queue.tube.timed:release", 0, None) == [0, "r", "x"]

    def test_a_client_that_creates_a_tube_is_told_what_it_is(self, client: Client) -> None:
        """The module's own server creates the tube and returns an error, because functions cannot be sent."""
        answer = client.call("queue.create_tube", "jobs", "fifo", {"temporary": True})
        options = {"temporary": True, "if_not_exists": False}
        assert answer == {"name": "jobs", "type": "fifo", "tube_id": 0, "opts": options}
