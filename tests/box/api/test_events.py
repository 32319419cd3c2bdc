"""Events: keys, values and notifications of watchers."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import Box, BoxError, ErrorCode
from iproto_server.box.api.events import Watcher, unpacked


class Listener:
    """Watches keys and records notifications."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.told: list[tuple[str, object]] = []
        self.watchers: dict[str, Watcher] = {}

    def watch(self, key: str) -> Watcher:
        self.watchers[key] = self.box.events.watch(key, self._tell)
        return self.watchers[key]

    def _tell(self, watcher: Watcher, data: bytes | None) -> None:
        self.told.append((watcher.key, unpacked(data)))

    def take(self) -> list[tuple[str, object]]:
        told, self.told = self.told, []
        return told


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.fixture
def listener(box: Box) -> Listener:
    return Listener(box)


def test_a_watcher_is_told_the_value_when_it_is_registered(box: Box, listener: Listener) -> None:
    box.broadcast("key", {"a": [1, None]})
    listener.watch("key")
    assert listener.take() == [("key", {"a": [1, None]})]


def test_a_watcher_of_a_key_without_a_value_is_told_that(listener: Listener) -> None:
    listener.watch("key")
    assert listener.take() == [("key", None)]


def test_a_watcher_is_told_nothing_more_before_it_has_acknowledged(box: Box, listener: Listener) -> None:
    watcher = listener.watch("key")
    box.broadcast("key", 1)
    box.broadcast("key", 2)
    assert listener.take() == [("key", None)]
    watcher.acknowledge()
    assert listener.take() == [("key", 2)]


def test_an_acknowledged_watcher_gets_the_next_value_at_once(box: Box, listener: Listener) -> None:
    listener.watch("key").acknowledge()
    box.broadcast("key", 1)
    assert listener.take() == [("key", None), ("key", 1)]


def test_acknowledging_twice_changes_nothing(box: Box, listener: Listener) -> None:
    watcher = listener.watch("key")
    watcher.acknowledge()
    watcher.acknowledge()
    box.broadcast("key", 1)
    box.broadcast("key", 2)
    assert listener.take() == [("key", None), ("key", 1)]


def test_the_same_value_once_more_is_an_event_too(box: Box, listener: Listener) -> None:
    box.broadcast("key", 1)
    listener.watch("key").acknowledge()
    box.broadcast("key", 1)
    assert listener.take() == [("key", 1), ("key", 1)]


def test_nil_takes_the_value_away_and_is_told(box: Box, listener: Listener) -> None:
    box.broadcast("key", 1)
    listener.watch("key").acknowledge()
    box.broadcast("key", None)
    assert listener.take() == [("key", 1), ("key", None)]
    assert box.watch_once("key") is None


def test_watchers_of_other_keys_are_not_told(box: Box, listener: Listener) -> None:
    listener.watch("one").acknowledge()
    listener.watch("two").acknowledge()
    listener.take()
    box.broadcast("two", 2)
    assert listener.take() == [("two", 2)]


def test_all_watchers_of_a_key_are_told(box: Box) -> None:
    listeners = [Listener(box), Listener(box)]
    for listener in listeners:
        listener.watch("key").acknowledge()
    box.broadcast("key", 1)
    assert [listener.take() for listener in listeners] == [[("key", None), ("key", 1)]] * 2


def test_one_that_fails_does_not_keep_the_news_from_the_others(box: Box, listener: Listener) -> None:
    def fail(watcher: Watcher, data: bytes | None) -> None:
        raise ZeroDivisionError

    box.events.watch("key", fail).acknowledge()
    listener.watch("key").acknowledge()
    box.broadcast("key", 1)
    assert listener.take() == [("key", None), ("key", 1)]


def test_an_unregistered_watcher_gets_nothing(box: Box, listener: Listener) -> None:
    watcher = listener.watch("key")
    watcher.acknowledge()
    listener.take()
    assert watcher.unregister()
    assert not watcher.unregister()
    watcher.acknowledge()
    watcher.notify_again()
    box.broadcast("key", 1)
    assert listener.take() == []


def test_a_repeated_notification_has_the_newest_value(box: Box, listener: Listener) -> None:
    watcher = listener.watch("key")
    box.broadcast("key", 1)
    watcher.notify_again()
    assert listener.take() == [("key", None), ("key", 1)]


def test_keys_that_have_neither_value_nor_watcher_are_forgotten(box: Box, listener: Listener) -> None:
    before = len(box.events)
    box.broadcast("value", 1)
    watcher = listener.watch("watched")
    box.broadcast("watched", 1)
    box.broadcast("nothing", None)
    assert len(box.events) == before + 2
    box.broadcast("value")
    box.broadcast("watched")
    assert len(box.events) == before + 1
    watcher.unregister()
    assert len(box.events) == before


@pytest.mark.parametrize("key", [None, 1, b"key", ["key"]])
def test_a_key_is_a_text(box: Box, key: Any) -> None:
    for use in (
        lambda: box.broadcast(key, 1),
        lambda: box.watch(key, lambda key, value: None),
        lambda: box.watch_once(key),
    ):
        with pytest.raises(BoxError) as caught:
            use()
        assert caught.value.code == ErrorCode.ILLEGAL_PARAMS


@pytest.mark.parametrize("key", ["box.", "box.id", "box.mine"])
def test_only_the_server_broadcasts_keys_that_begin_with_box(box: Box, key: str) -> None:
    before = box.watch_once(key)
    with pytest.raises(BoxError, match=r"^System event can't be override$") as caught:
        box.broadcast(key, 1)
    assert caught.value.code == ErrorCode.PROC_LUA
    assert box.watch_once(key) == before


def test_a_value_that_cannot_be_packed_changes_nothing(box: Box, listener: Listener) -> None:
    box.broadcast("key", 1)
    listener.watch("key").acknowledge()
    with pytest.raises(BoxError):
        box.broadcast("key", object())
    assert box.watch_once("key") == 1
    assert listener.take() == [("key", 1)]


# -- transactions --


def test_watchers_are_told_when_the_transaction_has_ended(box: Box, listener: Listener) -> None:
    listener.watch("key").acknowledge()
    listener.take()
    with box.in_transaction():
        box.broadcast("key", 1)
        assert box.watch_once("key") == 1
        assert listener.take() == []
        box.broadcast("key", 2)
    assert listener.take() == [("key", 1)]


def test_a_value_stays_when_its_transaction_is_undone(box: Box, listener: Listener) -> None:
    listener.watch("key").acknowledge()
    listener.take()
    with pytest.raises(ZeroDivisionError), box.in_transaction():
        box.broadcast("key", 1)
        raise ZeroDivisionError
    assert listener.take() == [("key", 1)]
    assert box.watch_once("key") == 1


def test_a_value_that_rests_on_unwritten_rows_is_told_when_they_are_safe(
    box: Box, listener: Listener
) -> None:
    safe: list[Any] = []
    box.events.when_safe = safe.append
    watcher = listener.watch("key")
    watcher.acknowledge()
    listener.take()
    box.atomic(box.broadcast, "key", "unsafe")
    newcomer = Listener(box)
    newcomer.watch("key")
    assert listener.take() == []
    assert newcomer.take() == [("key", None)]
    safe.pop()()
    assert listener.take() == [("key", "unsafe")]
    assert newcomer.take() == []


def test_a_value_that_is_safe_later_than_a_newer_one_is_not_told(box: Box, listener: Listener) -> None:
    safe: list[Any] = []
    box.events.when_safe = safe.append
    listener.watch("key").acknowledge()
    listener.take()
    box.atomic(box.broadcast, "key", "unsafe")
    box.broadcast("key", "newer")
    listener.watchers["key"].acknowledge()
    assert listener.take() == [("key", "newer")]
    safe.pop()()
    assert listener.take() == []
    assert box.watch_once("key") == "newer"


# -- functions of applications --


def test_a_function_is_called_at_once_and_at_every_change(box: Box) -> None:
    told: list[tuple[str, object]] = []
    box.broadcast("key", 0)
    watcher = box.watch("key", lambda key, value: told.append((key, value)))
    box.broadcast("key", 1)
    box.broadcast("key", None)
    assert told == [("key", 0), ("key", 1), ("key", None)]
    watcher.unregister()
    box.broadcast("key", 2)
    assert len(told) == 3
    with pytest.raises(BoxError, match=r"^Watcher is already unregistered$"):
        watcher.unregister()


def test_a_function_runs_as_the_server_in_a_transaction_of_its_own(box: Box) -> None:
    told: list[tuple[str, bool]] = []
    client = box.session.open("binary", "127.0.0.1:1")

    def watch() -> None:
        box.watch("key", lambda key, value: told.append((box.session.user(), box.is_in_txn())))
        assert told == []

    box.run(client, watch)
    assert told == [("admin", True)]


def test_a_function_that_raises_is_called_again(box: Box, caplog: pytest.LogCaptureFixture) -> None:
    told: list[object] = []

    def fail(key: str, value: object) -> None:
        told.append(value)
        raise ZeroDivisionError

    box.watch("key", fail)
    box.broadcast("key", 1)
    assert told == [None, 1]
    assert "a watcher of key failed" in caplog.text


def test_a_function_that_broadcasts_its_own_key_is_called_again_not_within_itself(box: Box) -> None:
    told: list[object] = []
    depth = 0

    def count(key: str, value: object) -> None:
        nonlocal depth
        depth += 1
        assert depth == 1
        told.append(value)
        if isinstance(value, int) and value < 3:
            box.broadcast("key", value + 10)
            box.broadcast("key", value + 1)
        depth -= 1

    box.watch("key", count)
    box.broadcast("key", 0)
    assert told == [None, 0, 1, 2, 3]


def test_a_function_may_unregister_itself(box: Box) -> None:
    told: list[object] = []

    def once(key: str, value: object) -> None:
        told.append(value)
        if value == 1:
            watcher.unregister()

    watcher = box.watch("key", once)
    box.broadcast("key", 1)
    box.broadcast("key", 2)
    assert told == [None, 1]


@pytest.mark.parametrize("callback", [None, 1, "print"])
def test_a_callback_must_be_a_function(box: Box, callback: Any) -> None:
    with pytest.raises(BoxError) as caught:
        box.watch("key", callback)
    assert caught.value.code == ErrorCode.ILLEGAL_PARAMS


def test_an_async_function_needs_an_event_loop(box: Box, caplog: pytest.LogCaptureFixture) -> None:
    async def callback(key: str, value: object) -> None:
        raise AssertionError

    box.watch("key", callback)
    assert "a watcher of key failed" in caplog.text


# -- system keys --


@pytest.mark.parametrize("key", ["box.id", "box.status", "box.election", "box.schema"])
def test_the_server_s_own_keys_are_there_from_the_beginning(key: str) -> None:
    assert Box().watch_once(key) == {}


def test_the_server_s_own_keys_tell_who_it_is_and_what_it_does(box: Box) -> None:
    box.announce()
    assert box.watch_once("box.id") == {
        "id": 1,
        "instance_uuid": box.uuid,
        "replicaset_uuid": box.cluster_uuid,
    }
    assert box.watch_once("box.status") == {"is_ro": False, "is_ro_cfg": False, "status": "running"}
    assert box.watch_once("box.election") == {"term": 1, "role": "follower", "is_ro": False, "leader": 0}
    assert box.watch_once("box.schema") == {"version": box.catalog.schema_version}


def test_every_change_of_the_schema_is_an_event(box: Box, listener: Listener) -> None:
    box.announce()
    listener.watch("box.schema").acknowledge()
    listener.take()
    space = box.schema.create_space("space")
    assert listener.take() == [("box.schema", {"version": box.catalog.schema_version})]
    listener.watchers["box.schema"].acknowledge()
    space.create_index("primary")
    assert listener.take() == [("box.schema", {"version": box.catalog.schema_version})]
    listener.watchers["box.schema"].acknowledge()
    space.insert([1])
    assert listener.take() == []


def test_a_change_of_the_schema_that_is_undone_is_an_event_with_a_newer_version(
    box: Box, listener: Listener
) -> None:
    listener.watch("box.schema").acknowledge()
    listener.take()
    with pytest.raises(ZeroDivisionError), box.in_transaction():
        box.schema.create_space("space")
        assert listener.take() == []
        raise ZeroDivisionError
    listener.watchers["box.schema"].acknowledge()
    assert listener.take()[-1] == ("box.schema", {"version": box.catalog.schema_version})
