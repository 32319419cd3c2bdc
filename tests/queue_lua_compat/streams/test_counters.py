"""Operations of a stream are counted at its commit; until then others do not see them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.queue_lua_compat.streams.talk import Person, Talk


def statistics(kind: str, person: Person) -> Any:
    """Return the counters of puts and takes, in the form of each queue."""
    if kind == "tutorial":
        found = person.call("queue.stats")
        return found["total"], found["taken"]
    if kind == "legacy":
        answer = person.call("queue.statistics", 0, "tube")
        counters = dict(zip(answer[::2], answer[1::2], strict=True))
        return tuple(int(counters.get(f"space0.tube.{name}", 0)) for name in ("put", "take"))
    calls = person.call("queue.statistics", "jobs")["calls"]
    return calls["put"], calls["take"]


@pytest.mark.parametrize("kind", ["tutorial", "legacy", "fifo", "fifottl"])
@pytest.mark.parametrize("end", ["commit", "roll_back", "leave", "lost log"])
def test_others_see_it_from_the_commit_on(kind: str, end: str) -> None:
    talk = Talk(kind)
    ann, bob = talk.connect(), talk.connect()
    ann.begin()
    ann.put("x")
    ann.put("y")
    ann.take()
    assert statistics(kind, bob) == (0, 0)
    assert statistics(kind, ann) == (2, 1)
    assert statistics(kind, bob) == (0, 0)
    if end == "lost log":
        talk.journal.is_slow = True
        ann.commit()
        assert statistics(kind, bob) == (2, 1)
        talk.lose_log()
    else:
        getattr(ann, end)()
    assert statistics(kind, bob) == ((2, 1) if end == "commit" else (0, 0))


@pytest.mark.parametrize("kind", ["tutorial", "legacy", "fifo", "fifottl"])
def test_what_others_have_counted_meanwhile_stays(kind: str) -> None:
    talk = Talk(kind)
    ann, bob = talk.connect(), talk.connect()
    ann.put("x")
    ann.begin()
    x = ann.take()
    bob.put("y")
    ann.ack(x)
    bob.put("z")
    assert statistics(kind, bob) == (3, 0)
    ann.commit()
    assert statistics(kind, bob) == ((2, 0) if kind == "tutorial" else (3, 1))
