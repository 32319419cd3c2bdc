"""Ownership follows the transaction that takes, acknowledges or releases a task."""

from __future__ import annotations

import pytest

from iproto_server import BoxError
from tests.queue_lua_compat.streams.dialects import DIALECTS, SUB_QUEUES
from tests.queue_lua_compat.streams.talk import Saboteur, Talk

CONFLICT = "Transaction has been aborted by conflict"

with_times = pytest.mark.parametrize("talk", ["legacy", "fifottl", "limfifottl"], indirect=True)
with_delays = pytest.mark.parametrize("talk", ["tutorial", "legacy", "fifottl", "limfifottl"], indirect=True)


@pytest.fixture(params=[*DIALECTS, *SUB_QUEUES])
def talk(request: pytest.FixtureRequest) -> Talk:
    return Talk(request.param)


@pytest.mark.parametrize("end", ["roll_back", "commit", "time_out", "leave"])
def test_a_take_that_comes_to_nothing_takes_the_task_from_nobody(talk: Talk, end: str) -> None:
    ann, bob = talk.connect(), talk.connect()
    for data in ("x", "y", "z"):
        ann.put(data)
    ann.begin(timeout=1)
    x = ann.take()
    assert bob.take() == x
    y = bob.take()
    if end == "commit":
        with pytest.raises(BoxError, match=CONFLICT):
            ann.commit()
    elif end == "time_out":
        talk.clock.advance(1)
        ann.roll_back()
    else:
        getattr(ann, end)()
    assert talk.owned == {"x": bob.session.id, "y": bob.session.id}
    bob.ack(x)
    bob.leave()
    cid = talk.connect()
    assert cid.take() == y
    assert talk.statuses == {"y": "t", "z": "r"}


@pytest.mark.parametrize("operation", ["ack", "release"])
@pytest.mark.parametrize("end", ["roll_back", "time_out"])
def test_a_task_stays_with_its_owner_when_what_a_stream_did_is_undone(
    talk: Talk, operation: str, end: str
) -> None:
    ann, bob = talk.connect(), talk.connect()
    ann.put("x")
    x = ann.take()
    ann.begin(timeout=1)
    ann.change(operation, x)
    assert talk.owned == {"x": ann.session.id}
    assert bob.take() is None
    if end == "time_out":
        talk.clock.advance(1)
    ann.roll_back()
    assert talk.owned == {"x": ann.session.id}
    ann.ack(x)
    assert talk.statuses == {}


def test_the_task_of_a_client_that_goes_while_its_stream_gives_it_back_is_ready_once(talk: Talk) -> None:
    ann, bob, cid = talk.connect(), talk.connect(), talk.connect()
    ann.put("x")
    x = ann.take()
    waiting = bob.wait()
    ann.begin()
    ann.ack(x)
    ann.leave()
    assert waiting.is_done
    assert talk.owned == {"x": bob.session.id}
    assert cid.take() is None


@with_times
@pytest.mark.parametrize("waits", [False, True])
def test_a_stream_that_loses_against_the_time_to_run_has_the_task_no_more(talk: Talk, *, waits: bool) -> None:
    ann, bob, cid = talk.connect(), talk.connect(), talk.connect()
    ann.put("x", ttr=3)
    x = ann.take()
    ann.begin()
    ann.ack(x)
    waiting = bob.wait() if waits else None
    talk.clock.advance(3)
    assert waiting.is_done if waiting else bob.take() == x
    with pytest.raises(BoxError, match=CONFLICT):
        ann.commit()
    with pytest.raises(BoxError):
        ann.ack(x)
    ann.leave()
    assert cid.take() is None
    bob.ack(x)
    assert talk.statuses == {}


def test_of_two_streams_with_the_same_task_the_first_to_commit_has_it(talk: Talk) -> None:
    ann, bob = talk.connect(), talk.connect()
    ann.put("x")
    ann.begin()
    bob.begin()
    x = ann.take()
    assert bob.take() == x
    ann.commit()
    with pytest.raises(BoxError, match=CONFLICT):
        bob.commit()
    assert talk.owned == {"x": ann.session.id}
    with pytest.raises(BoxError):
        bob.ack(x)
    ann.ack(x)


@with_times
def test_a_commit_whose_timers_are_due_at_once_has_its_owners_first(talk: Talk) -> None:
    """The time to run of a task taken in a stream is over at the commit."""
    ann, bob = talk.connect(), talk.connect()
    ann.put("x", ttr=3)
    ann.begin()
    x = ann.take()
    talk.clock.advance(4)
    ann.commit()
    assert talk.statuses == {"x": "r"}
    assert talk.owned == {}
    assert bob.take() == x
    ann.leave()
    assert talk.owned == {"x": bob.session.id}


def test_a_task_of_a_stream_is_given_back_when_its_client_goes(talk: Talk) -> None:
    ann, bob = talk.connect(), talk.connect()
    ann.put("x")
    ann.begin()
    x = ann.take()
    ann.commit()
    ann.leave()
    assert bob.take() == x


def test_the_owner_follows_when_the_log_cannot_be_written(talk: Talk) -> None:
    ann, bob = talk.connect(), talk.connect()
    ann.put("x")
    ann.put("y")
    x = ann.take()
    talk.journal.is_slow = True
    ann.begin()
    ann.ack(x)
    y = ann.take()
    ann.commit()
    assert talk.owned == {"y": ann.session.id}
    talk.lose_log()
    assert talk.owned == {"x": ann.session.id}
    assert bob.take() == y
    ann.ack(x)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("operation", ["ack", "release"])
def test_a_procedure_that_goes_on_after_a_refusal_leaves_the_task_with_its_owner(
    talk: Talk, operation: str, *, is_first: bool
) -> None:
    ann = talk.connect()
    ann.put("x")
    x = ann.take()
    saboteur = Saboteur(talk, is_first=is_first)
    saboteur.refused.add(x)
    name, *arguments = talk.dialect.change(operation, x, 0)
    function = talk.dialect.function_of_applications(name)

    def procedure() -> None:
        with pytest.raises(ZeroDivisionError):
            function(talk.box, *arguments)

    talk.box.run(ann.session, procedure)
    assert talk.owned == {"x": ann.session.id}
    saboteur.refused.clear()
    ann.ack(x)


def test_a_task_that_cannot_be_given_back_does_not_keep_the_others(talk: Talk) -> None:
    ann, bob = talk.connect(), talk.connect()
    for data in ("x", "y", "z"):
        ann.put(data)
    ann.take()
    y = ann.take()
    ann.take()
    saboteur = Saboteur(talk)
    saboteur.refused.add(y)
    ann.leave()
    assert talk.statuses == {"x": "r", "y": "t", "z": "r"}
    talk.clock.advance(1)
    assert talk.statuses == {"x": "r", "y": "t", "z": "r"}
    with pytest.raises(BoxError):
        bob.ack(y)
    saboteur.refused.clear()
    talk.clock.advance(2)
    assert talk.statuses == {"x": "r", "y": "r", "z": "r"}


@with_delays
def test_a_delayed_task_that_cannot_be_made_ready_does_not_keep_the_others(talk: Talk) -> None:
    ann = talk.connect()
    x, _, _ = (ann.put(data, delay=1) for data in ("x", "y", "z"))
    saboteur = Saboteur(talk)
    saboteur.refused.add(x)
    talk.clock.advance(1)
    assert talk.statuses == {"x": "d", "y": "r", "z": "r"}
    saboteur.refused.clear()
    talk.clock.advance(2)
    assert talk.statuses == {"x": "r", "y": "r", "z": "r"}


@with_delays
def test_a_delayed_task_of_a_stream_that_commits_after_a_reload_is_ready_in_time(talk: Talk) -> None:
    ann = talk.connect()
    ann.begin()
    ann.put("x", delay=5)
    talk.dialect.reload()
    ann.commit()
    assert talk.statuses == {"x": "d"}
    talk.clock.advance(5)
    assert talk.statuses == {"x": "r"}


def test_tasks_of_clients_that_are_gone_come_back_together_after_a_lost_log(talk: Talk) -> None:
    """Waiting calls receive the oldest of them, whichever client had it."""
    ann, bob, cid = talk.connect(), talk.connect(), talk.connect()
    for data in ("x", "y", "z"):
        cid.put(data)
    x = ann.take()
    y = bob.take()
    z = bob.take()
    talk.journal.is_slow = True
    ann.leave()
    bob.ack(z)
    bob.ack(y)
    bob.leave()
    talk.lose_log()
    assert talk.statuses == {"x": "t", "y": "t", "z": "t"}
    waiting = cid.wait()
    talk.clock.advance(1)
    assert talk.dialect.task(waiting.result)[0] == x
    assert talk.statuses == {"x": "t", "y": "r", "z": "r"}


def test_a_task_is_given_back_once_more_when_the_log_of_the_second_attempt_is_lost(talk: Talk) -> None:
    ann = talk.connect()
    ann.put("x")
    saboteur = Saboteur(talk)
    saboteur.refused.add(ann.take())
    ann.leave()
    assert talk.statuses == {"x": "t"}
    saboteur.refused.clear()
    talk.journal.is_slow = True
    talk.clock.advance(1)
    assert talk.statuses == {"x": "r"}
    talk.lose_log()
    assert talk.statuses == {"x": "t"}
    talk.clock.advance(2)
    assert talk.statuses == {"x": "r"}


def test_a_task_that_could_not_be_given_back_is_given_back_after_a_reload(talk: Talk) -> None:
    ann = talk.connect()
    ann.put("x")
    saboteur = Saboteur(talk)
    saboteur.refused.add(ann.take())
    ann.leave()
    assert talk.statuses == {"x": "t"}
    saboteur.refused.clear()
    talk.dialect.reload()
    talk.clock.advance(1)
    assert talk.statuses == {"x": "r"}
