"""Finding and creating spaces."""

from __future__ import annotations

import pytest

from iproto_server import BoxError
from queue_lua_compat.legacy.task import FORMAT
from tests.queue_lua_compat.conftest import Client, answered
from tests.queue_lua_compat.legacy.conftest import LegacyServer, data_of, error_of, put, take


@pytest.mark.parametrize("given", [7, "7", 7.0, b"7", " 7 ", "0x7"])
def test_a_number_is_that_of_a_space(server: LegacyServer, client: Client, given: object) -> None:
    client.call("put", given, "tube")
    assert server.box.space["queue_7"].id == 7


@pytest.mark.parametrize("given", [0, "0", 0.0])
def test_the_space_0_has_another_number_today(server: LegacyServer, client: Client, given: object) -> None:
    client.call("put", given, "tube")
    assert server.box.space["queue_0"].id >= 512


def test_a_name_is_that_of_a_space(server: LegacyServer, client: Client) -> None:
    task = client.call("put", "jobs", "tube")
    assert server.tasks("jobs")[0][0] == task[0]
    assert client.call("take", server.box.space["jobs"].id, "tube", 0)[0] == task[0]
    assert client.call("ack", "jobs", task[0])[0] == task[0]


def test_a_space_is_made_on_its_first_use_with_its_format_and_indexes(
    server: LegacyServer, client: Client
) -> None:
    assert client.call("take", 0, "tube", 0) is None
    space = server.box.space["queue_0"]
    assert space.format() == list(FORMAT)
    assert [index.name for index in space.index] == ["task", "tube", "event"]
    client.call("put_unique", 0, "tube", 0, 0, 0, 0, "data")
    assert [index.name for index in space.index] == ["task", "tube", "event", "data"]


@pytest.mark.parametrize("given", [None, True, [0], {"id": 0}, -1, "-1", 1.5, float("inf"), float("nan")])
def test_what_is_no_space_is_refused(client: Client, given: object) -> None:
    assert error_of(client, "put", given, "tube").startswith("space must be a ")


@pytest.mark.parametrize("given", [280, "_space", "other"])
def test_a_space_of_something_else_is_refused(server: LegacyServer, client: Client, given: object) -> None:
    server.box.run(server.box.session.background, server.box.schema.create_space, "other")
    assert error_of(client, "put", given, "tube") == f"space {given} is no queue's"


def test_the_servers_own_numbers_are_refused(client: Client) -> None:
    expected = "space 300 is no queue's: the numbers 256 to 511 are the server's own"
    assert error_of(client, "take", 300, "tube") == expected


def test_who_may_not_write_to_it_makes_no_space(server: LegacyServer) -> None:
    guest = server.connect("guest")
    assert error_of(guest, "put", 0, "tube") == "Write access to space 'queue_0' is denied for user 'guest'"
    assert error_of(guest, "take", 0, "tube") == "Read access to space 'queue_0' is denied for user 'guest'"
    assert "queue_0" not in server.box.space
    assert server.queue.registry.spaces == {}


def test_a_space_that_was_made_before_is_used(server: LegacyServer, client: Client) -> None:
    task = put(client, "data")
    server.restart()
    assert take(server.connect()) == [task[0], "tube", "taken", "data"]


def test_a_space_that_was_dropped_is_made_anew(server: LegacyServer, client: Client) -> None:
    put(client, "old")
    take(client)
    waiting = server.connect().call("take", 0, "other tube", 60)
    server.box.run(server.box.session.background, server.box.space["queue_0"].drop)
    with pytest.raises(BoxError, match=r"^Space 'queue_0' does not exist$"):
        answered(waiting)
    assert server.queue.registry.spaces == {}
    put(client, "new")
    assert data_of(client) == ["new"]
    client.close()


def test_a_space_whose_drop_is_undone_goes_on(server: LegacyServer, client: Client) -> None:
    put(client, "data", delay=5)

    def drop_and_fail() -> None:
        server.box.space["queue_0"].drop()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        server.box.run(server.box.session.background, server.box.atomic, drop_and_fail)
    server.clock.advance(5)
    assert data_of(client) == ["data"]


def test_a_space_that_was_renamed_keeps_its_tasks(server: LegacyServer, client: Client) -> None:
    task = client.call("put", "jobs", "tube")
    client.call("take", "jobs", "tube", 0)
    server.box.run(server.box.session.background, server.box.space["jobs"].rename, "work")
    assert client.call("ack", "work", task[0])[0] == task[0]
    client.call("put", "jobs", "tube")
    assert len(server.queue.registry.spaces) == 2


def test_after_a_truncation_nobody_has_a_task(server: LegacyServer, client: Client) -> None:
    task = put(client)
    take(client)
    server.box.run(server.box.session.background, server.box.space["queue_0"].truncate)
    assert error_of(client, "ack", 0, task[0]) == "Task not found"
    [queue_space] = server.queue.registry.spaces.values()
    assert queue_space.owners.sessions == {}
