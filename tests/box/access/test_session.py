"""Sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import Box, ErrorCode
from iproto_server.box.access.session import SessionStorage
from tests.box.boxes import accounts, new_box, refused


@pytest.fixture
def box() -> Box:
    return new_box()[0]


class TestTheServersOwn:
    def test_it_is_the_first_and_runs_as_admin(self, box: Box) -> None:
        session = box.session
        assert session.current is session.background
        assert (session.id(), session.user(), session.uid(), session.euid()) == (1, "admin", 1, 1)
        assert (session.type(), session.peer(), session.sync()) == ("background", None, 0)


class TestClients:
    def test_they_begin_as_guest(self, box: Box) -> None:
        client = box.session.open("binary", "192.0.2.1:4000")
        assert box.run(client, box.session.user) == "guest"
        assert box.run(client, box.session.uid) == 0
        assert box.run(client, box.session.type) == "binary"
        assert box.run(client, box.session.peer) == "192.0.2.1:4000"

    def test_every_one_has_a_number_of_its_own_that_is_not_used_again(self, box: Box) -> None:
        first = box.session.open("binary", None)
        box.session.close(first)
        second = box.session.open("binary", None)
        assert first.id < second.id

    def test_they_exist_until_they_are_closed(self, box: Box) -> None:
        client = box.session.open("binary", "a")
        assert (box.session.exists(client.id), box.session.peer(client.id)) == (True, "a")
        box.session.close(client)
        assert (box.session.exists(client.id), client.is_closed) == (False, True)
        assert refused(box.session.peer, client.id) == (254, f"Session {client.id} does not exist")

    def test_closing_twice_is_harmless(self, box: Box) -> None:
        client = box.session.open("binary", "a")
        box.session.close(client)
        box.session.close(client)

    def test_a_closed_session_has_no_peer(self, box: Box) -> None:
        client = box.session.open("binary", "a")
        client.is_closed = True
        assert box.run(client, box.session.peer) is None

    def test_nobody_has_that_number(self, box: Box) -> None:
        assert not box.session.exists(99)
        assert refused(box.session.peer, 99)[0] == ErrorCode.NO_SUCH_SESSION

    def test_an_unknown_user_cannot_have_one(self, box: Box) -> None:
        assert refused(box.session.open, "binary", None, user="nobody")[0] == ErrorCode.NO_SUCH_USER
        assert list(box.session.sessions) == [1]

    def test_they_have_only_their_users_rights(self, box: Box) -> None:
        space = accounts(box)
        client = box.session.open("binary", None)
        for use in (space.select, space.truncate, space.drop, lambda: box.schema.create_space("s")):
            assert refused(box.run, client, use)[0] == ErrorCode.ACCESS_DENIED
        assert len(space) == 3


class TestStorage:
    def test_each_session_has_its_own(self, box: Box) -> None:
        first, second = (box.session.open("binary", None) for _ in range(2))

        def remember(value: object) -> None:
            box.session.storage.value = value

        box.run(first, remember, 1)
        box.run(second, remember, 2)
        assert box.run(first, lambda: box.session.storage.value) == 1
        assert box.run(second, lambda: box.session.storage["value"]) == 2
        assert box.session.storage.value is None

    def test_names_are_keys(self) -> None:
        storage = SessionStorage()
        storage.peer = "a"
        storage["user name"] = "Ann"
        assert storage == {"peer": "a", "user name": "Ann"}
        del storage.peer
        del storage.peer
        assert storage.peer is None
        assert storage == {"user name": "Ann"}

    def test_it_has_no_secret_methods(self) -> None:
        with pytest.raises(AttributeError):
            _ = SessionStorage().__html__


class TestAnotherUser:
    def test_for_the_length_of_a_block(self, box: Box) -> None:
        client = box.session.open("binary", None)

        def procedure() -> tuple[object, ...]:
            before = box.session.effective_user()
            with box.session.su("admin"):
                inside = (
                    box.session.effective_user(),
                    box.session.user(),
                    box.session.euid(),
                    box.session.uid(),
                )
                accounts(box)
            return before, inside, box.session.effective_user()

        assert box.run(client, procedure) == ("guest", ("admin", "guest", 1, 0), "guest")

    def test_for_one_call(self, box: Box) -> None:
        client = box.session.open("binary", None)

        def names() -> tuple[str, str]:
            return box.session.user(), box.session.effective_user()

        assert box.run(client, lambda: (box.session.su("admin", names), names())) == (
            ("guest", "admin"),
            ("guest", "guest"),
        )
        assert box.session.su(0, max, 1, 2) == 2

    def test_for_good(self, box: Box) -> None:
        client = box.session.open("binary", None)
        box.run(client, box.session.su, "admin")
        assert box.run(client, box.session.user) == "admin"
        assert box.run(client, box.session.effective_user) == "admin"

    def test_for_good_within_a_block(self, box: Box) -> None:
        client = box.session.open("binary", None)

        def procedure() -> list[tuple[str, str]]:
            names = []
            with box.session.su("admin"):
                box.schema.user.create("ann")
                box.session.su("ann")
                names.append((box.session.user(), box.session.effective_user()))
            return [*names, (box.session.user(), box.session.effective_user())]

        assert box.run(client, procedure) == [("ann", "ann")] * 2

    def test_it_needs_no_right_but_the_other_must_have_one_to_a_session(self, box: Box) -> None:
        box.schema.user.create("ann")
        box.schema.user.disable("ann")
        client = box.session.open("binary", None)
        reason = "Session access to universe '' is denied for user 'ann'"
        assert refused(box.run, client, lambda: box.session.su("ann")) == (42, reason)
        assert box.run(client, box.session.user) == "guest"

    def test_it_ends_with_what_the_block_raises(self, box: Box) -> None:
        with pytest.raises(KeyError), box.session.su("guest"):
            raise KeyError
        assert box.session.user() == "admin"

    def test_blocks_within_blocks(self, box: Box) -> None:
        with box.session.su("guest"):
            with box.session.su("admin"):
                assert box.session.effective_user() == "admin"
            assert box.session.effective_user() == "guest"

    @pytest.mark.parametrize("user", ["nobody", "", "public", None, 9999])
    def test_su_to_missing_users_and_roles(self, box: Box, user: Any) -> None:
        assert refused(box.session.su, user) == (45, f"User '{user}' is not found")
        assert box.session.user() == "admin"


class TestTriggers:
    @pytest.mark.parametrize("event", ["connect", "disconnect", "auth"])
    def test_they_are_set_replaced_and_deleted(self, box: Box, event: str) -> None:
        on_event: Callable[..., object] = getattr(box.session, f"on_{event}")
        assert (on_event(print), on_event(len)) == (print, len)
        assert on_event() == [len, print]
        assert on_event(max, print) is max
        assert on_event(None, len) is None
        assert on_event() == [max]
        with pytest.raises(ValueError, match="not set"):
            on_event(None, len)
        with pytest.raises(TypeError, match="callable"):
            on_event("print")

    def test_each_event_has_its_own_list(self, box: Box) -> None:
        box.session.on_connect(len)
        box.session.on_disconnect(max)
        box.session.on_auth(min)
        facade = box.session
        lists = (facade.connect_triggers, facade.disconnect_triggers, facade.authentication_triggers)
        assert [triggers.functions for triggers in lists] == [(len,), (max,), (min,)]


def test_closing_a_session_runs_its_callbacks(box: Box) -> None:
    client = box.session.open("binary", None)
    told: list[str] = []
    client.on_close["first"] = lambda: told.append("first")
    client.on_close["second"] = lambda: told.append("second")
    box.session.close(client)
    box.session.close(client)
    assert told == ["first", "second"]
