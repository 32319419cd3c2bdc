"""Random calls to tubes of our server and of the queue module: the same answers, the same rows.

The module is that of github.com/tarantool/queue, in a checkout that TARANTOOL_QUEUE_CHECKOUT names, on a
real Tarantool.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, note

from tests.conftest import StartTarantool
from tests.differential.tubes.conversation import PAUSE, Step, conversations
from tests.differential.tubes.deliberate import DELIBERATE
from tests.differential.tubes.sides import Outcome, Side
from tests.plugins.profiles import examples
from tests.queue_lua_compat.real_tubes import tubes_application
from tests.running_server import RunningServer

TUBES_APPLICATION = "queue_lua_compat.tubes:app"
SUPER_GUEST = "tests.differential.super_guest:app"


@pytest.fixture(scope="module")
def sides(
    tmp_path_factory: pytest.TempPathFactory, real_tarantool: StartTarantool
) -> Iterator[tuple[Side, Side]]:
    """Our server, and theirs."""
    theirs = real_tarantool(tubes_application())
    with RunningServer(tmp_path_factory.mktemp("tubes"), [TUBES_APPLICATION, SUPER_GUEST]) as ours:
        pair = Side(ours.host, ours.port), Side(theirs.host, theirs.port)
        yield pair
        for side in pair:
            side.close()


class Conversation:
    """Clients that send the same calls to both servers."""

    def __init__(self, ours: Side, theirs: Side) -> None:
        self._ours = ours
        self._theirs = theirs
        self._busy: set[str] = set()
        self._done = {""}

    def begin(self, kind: str, options: dict[str, Any]) -> None:
        """Create the same tube on both servers, without anything else."""
        for side in (self._theirs, self._ours):
            side.clear()
            side.begin(kind, dict(options))
        assert self._ours.look() == self._theirs.look()

    def go_on(self, step: Step) -> bool:
        """Make a client's call, and compare the answers of both servers.

        Returns:
            Whether the two can still be compared.
        """
        if step == PAUSE:
            return True
        if step.who in self._busy and step.action != "leave":
            return True
        note(str(step))
        self._done.add(step.action)
        before = self._ours.look()
        theirs, ours = self._theirs.do(step), self._ours.do(step)
        if step.action == "leave":
            self._busy.discard(step.who)
        elif step.action == "wait":
            self._busy.add(step.who)
        elif not self._compare(step, ours, theirs):
            return False
        return self._answer_those_who_waited(step) and self._look(step, ours, before)

    def _compare(self, step: Step, ours: object, theirs: object) -> bool:
        if ours == theirs:
            return True
        for difference in DELIBERATE:
            if difference.after in self._done and difference.applies(step, ours, theirs):
                note(f"on purpose: {difference.reason}")
                return not difference.is_over
        raise AssertionError(f"{step}\nours:   {ours}\ntheirs: {theirs}")

    def _answer_those_who_waited(self, step: Step) -> bool:
        ours, theirs = self._ours.waiting(), self._theirs.waiting()
        if not self._compare(step, {"waiting": sorted(ours)}, {"waiting": sorted(theirs)}):
            return False
        for who in sorted(self._busy - ours):
            self._busy.remove(who)
            if not self._compare(step, self._ours.answer_to(who), self._theirs.answer_to(who)):
                return False
        return True

    def _look(self, step: Step, answer: Outcome | None, before: dict[str, object]) -> bool:
        ours, theirs = self._ours.look(), self._theirs.look()
        if ours != theirs and answer is not None and answer[0] == "error":
            # The module keeps the changes of a call that failed.
            assert ours == before, f"{step} failed\nbefore: {before}\nafter:  {ours}"
            return False
        return all(self._compare(step, {what: seen}, {what: theirs[what]}) for what, seen in ours.items())


@given(conversation=conversations)
@examples(80)
def test_random_conversations_are_answered_alike(
    sides: tuple[Side, Side], conversation: tuple[str, dict[str, Any], list[Step]]
) -> None:
    kind, options, steps = conversation
    talk = Conversation(*sides)
    talk.begin(kind, options)
    for step in steps:
        if not talk.go_on(step):
            break
