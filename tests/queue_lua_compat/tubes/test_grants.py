"""Rights to use a tube, on our server and on the real module."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.queue_lua_compat.tubes.talk import Talk
from tests.queue_lua_compat.tubes.world import World

_users = itertools.count(1)

METHODS = ["put", "take", "touch", "ack", "release", "peek", "bury", "kick", "delete"]


@pytest.fixture
def user(world: World) -> Iterator[str]:
    """Create a user without rights, and log the client "ann" in as that user."""
    name = f"user{next(_users)}"
    world.log_in("ann", name)
    yield name
    # The limit is 32.
    assert world.call("operator", "box.schema.user.drop", name) == []


@pytest.fixture(params=["fifo", "fifottl", "limfifottl"])
def talk(request: pytest.FixtureRequest, world: World) -> Talk:
    return Talk(world, world.create(request.param))


def rights(talk: Talk, user: str) -> dict[str, str]:
    """Return the rights granted to a user, by their objects."""
    info = talk.world.call("operator", "box.schema.user.info", user)[0]
    return {
        f"{kind} {name}".replace(talk.tube, "TUBE"): privileges
        for privileges, kind, name in info
        if kind in ("space", "function")
    }


SPACES = {
    "space TUBE": "read,write",
    "space _queue": "read",
    "space _queue_consumers": "read,write",
    "space _queue_session_ids": "read,write",
    "space _queue_shared_sessions": "read,write",
    "space _queue_taken_2": "read,write",
}


class TestGrant:
    def test_without_options_the_spaces_are_granted(self, talk: Talk, user: str) -> None:
        assert talk("operator", "grant", user) == []
        assert rights(talk, user) == SPACES

    def test_the_calls_are_granted_when_asked_for(self, talk: Talk, user: str) -> None:
        talk("operator", "grant", user, {"call": True})
        functions = {f"function queue.tube.TUBE:{method}": "execute" for method in METHODS}
        common = {"function queue.identify": "execute", "function queue.statistics": "execute"}
        granted = {name: right for name, right in rights(talk, user).items() if not name.endswith("_many")}
        assert granted == {**SPACES, **functions, **common}

    def test_truncation_is_granted_when_asked_for(self, talk: Talk, user: str) -> None:
        talk("operator", "grant", user, {"truncate": True})
        assert rights(talk, user) == {**SPACES, "function queue.tube.TUBE:truncate": "execute"}

    def test_the_names_of_calls_may_begin_otherwise(self, talk: Talk, user: str) -> None:
        talk("operator", "grant", user, {"truncate": True, "prefix": "my.tubes"})
        assert rights(talk, user) == {**SPACES, "function my.tubes.TUBE:truncate": "execute"}

    def test_it_may_be_done_again(self, talk: Talk, user: str) -> None:
        for _ in range(2):
            assert talk("operator", "grant", user, {"call": True}) == []

    def test_there_must_be_such_a_user(self, talk: Talk) -> None:
        assert talk("operator", "grant", "nosuch") == (45, "User 'nosuch' is not found")
        assert talk("operator", "grant_role", "nosuch") == (82, "Role 'nosuch' is not found")

    def test_options_are_a_map(self, talk: Talk, user: str) -> None:
        error = (32, "attempt to index local 'args' (a number value)")
        assert talk("operator", "grant", user, 5) == error


class TestWorkingWithRights:
    def test_without_a_grant_nothing_can_be_called(self, talk: Talk, user: str) -> None:
        name = f"queue.tube.{talk.tube}:put"
        error = f"Execute access to function '{name}' is denied for user '{user}'"
        assert talk("ann", "put", "x") == (42, error)

    def test_with_a_grant_all_work_can_be_done(self, talk: Talk, user: str) -> None:
        talk("operator", "grant", user, {"call": True})
        assert talk("ann", "put", "x") == [[0, "r", "x"]]
        assert talk("ann", "take") == [[0, "t", "x"]]
        assert talk("ann", "release", 0) == [[0, "r", "x"]]
        assert talk("ann", "bury", 0) == [[0, "!", "x"]]
        assert talk("ann", "kick", 1) == [1]
        assert talk("ann", "peek", 0) == [[0, "r", "x"]]
        assert talk("ann", "take") == [[0, "t", "x"]]
        assert talk("ann", "ack", 0) == [[0, "-", "x"]]
        assert len(talk.world.call("ann", "queue.identify")[0].encode("utf-8", "surrogateescape")) == 16
        (statistics,) = talk.world.call("ann", "queue.statistics", talk.tube)
        assert statistics["calls"]["put"] == 1
        talk.start("ann", "take", 10)
        talk("operator", "put", "y")
        assert talk.world.finish("ann") == [[0, "t", "y"]]

    def test_what_was_not_granted_is_refused(self, talk: Talk, user: str) -> None:
        talk("operator", "grant", user, {"call": True})
        for method in ("truncate", "drop", "release_all"):
            name = f"queue.tube.{talk.tube}:{method}"
            error = f"Execute access to function '{name}' is denied for user '{user}'"
            assert talk("ann", method) == (42, error)

    def test_one_who_may_call_but_not_read_is_refused_by_the_space(self, talk: Talk, user: str) -> None:
        name = f"queue.tube.{talk.tube}:put"
        talk.world.call("operator", "box.schema.func.create", name)
        talk.world.call("operator", "box.schema.user.grant", user, "execute", "function", name)
        error = f"Read access to space '{talk.tube}' is denied for user '{user}'"
        assert talk("ann", "put", "x") == (42, error)

    def test_a_role_brings_its_rights(self, talk: Talk, user: str) -> None:
        role = f"role of {user}"
        talk.world.call("operator", "box.schema.role.create", role)
        talk.world.call("operator", "box.schema.user.grant", user, role)
        assert talk("operator", "grant_role", role, {"call": True}) == []
        assert talk("ann", "put", "x") == [[0, "r", "x"]]
        assert talk("ann", "take") == [[0, "t", "x"]]
        assert talk("ann", "ack", 0) == [[0, "-", "x"]]
        talk.start("ann", "take", 10)
        talk("operator", "put", "y")
        assert talk.world.finish("ann") == [[0, "t", "y"]]
        talk.world.leave("ann")
        assert talk("operator", "take", 10) == [[0, "t", "y"]]
        talk.world.call("operator", "box.schema.role.drop", role)
