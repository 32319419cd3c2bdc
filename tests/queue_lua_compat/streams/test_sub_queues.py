"""A stream's transaction has its own view of the heads of sub-queues."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import BoxError
from tests.queue_lua_compat.streams.dialects import SUB_QUEUES
from tests.queue_lua_compat.streams.talk import Person, Talk


@pytest.fixture(params=SUB_QUEUES)
def talk(request: pytest.FixtureRequest) -> Talk:
    return Talk(request.param)


def put(who: Person, sub_queue: str, **options: object) -> Any:
    """Put a task. Returns: its id."""
    return who.call("queue.tube.jobs:put", "data", {"utube": sub_queue, **options})[0]


def test_others_are_given_the_first_task_of_a_sub_queue_that_a_stream_has_done(talk: Talk) -> None:
    ann, bob = talk.connect(), talk.connect()
    x, y = put(ann, "a"), put(ann, "a")
    ann.begin()
    assert ann.take() == x
    ann.ack(x)
    assert bob.take() == x
    assert bob.take() is None
    with pytest.raises(BoxError, match="aborted by conflict"):
        ann.commit()
    bob.ack(x)
    assert bob.take() == y


def test_a_task_that_a_stream_has_taken_is_there_for_others_until_the_commit(talk: Talk) -> None:
    ann, bob, cid = talk.connect(), talk.connect(), talk.connect()
    x = put(cid, "a")
    ann.begin()
    assert ann.take() == x
    assert bob.take() == x
    bob.release(x)
    ann.roll_back()
    ann.begin()
    assert ann.take() == x
    ann.commit()
    assert bob.take() is None


def test_a_stream_is_given_the_next_task_of_the_sub_queue_once_it_has_done_the_first(talk: Talk) -> None:
    ann, bob = talk.connect(), talk.connect()
    x, y = put(ann, "a"), put(ann, "a")
    ann.begin()
    assert ann.take() == x
    assert ann.take() is None
    put(bob, "b")
    ann.ack(x)
    assert ann.take() == y
    ann.commit()
    assert talk.dialect.owners() == {y: ann.session.id}


@pytest.mark.parametrize("talk", ["utubettl"], indirect=True)
def test_a_task_that_a_stream_puts_first_is_in_nobodys_way(talk: Talk) -> None:
    ann, bob = talk.connect(), talk.connect()
    x = put(bob, "a", pri=1)
    ann.begin()
    y = put(ann, "a", pri=0)
    assert bob.take() == x
    bob.ack(x)
    ann.roll_back()
    ann.begin()
    y = put(ann, "a", pri=0)
    ann.commit()
    assert bob.take() == y


@pytest.mark.parametrize("talk", ["utube with a ready buffer"], indirect=True)
def test_a_ready_buffer_has_the_heads_that_its_reader_sees(talk: Talk) -> None:
    ann, bob = talk.connect(), talk.connect()
    x = put(bob, "a")

    def buffered() -> list[list[Any]]:
        rows = talk.box.space["jobs_ready_buffer"].select()
        return [list(row) for row in rows]

    ann.begin()
    assert ann.take() == x
    y = put(bob, "b")
    assert talk.dialect.as_server(buffered) == [[x, "a"], [y, "b"]]
    ann.release(x)
    ann.commit()
    assert talk.dialect.as_server(buffered) == [[x, "a"], [y, "b"]]
