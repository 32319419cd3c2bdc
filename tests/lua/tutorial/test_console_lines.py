"""Each line that the tutorial types in a console is answered as it prints there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.lua.tutorial.applications import (
    HERE,
    OURS,
    REAL,
    SERVED,
    Running,
    masked,
    put_files,
    running,
    tutorial_text,
)

pytestmark = pytest.mark.process


class Line(NamedTuple):
    """A statement and its answer, with ID and TIME in place of ids and times.

    Attributes:
        is_unordered: whether the lines of the answer may come in another order.
        before: a statement that prepares for this one, whose answer does not matter.
    """

    statement: str
    answer: str
    is_unordered: bool = False
    before: str = ""


NEW = "box.space.queue:truncate()"
WAIT = """\
do
    box.space.queue:truncate()
    fiber.create(function()
        fiber.sleep(0.1)
        queue.put("task {number}")
    end)
    local start = fiber.time()
    return queue.take(3), {{ wait = fiber.time() - start }}
end"""
TAKE_ONE = "task = queue.take() return task"
MANY = """\
for n = 1, 12 do queue.put(n) end for n = 1, 2 do queue.take() end \
for n = 1, 5 do box.space.queue:insert{n, 'W', {}} end"""
STATS = "- ready: 10\n  taken: 2\n  waiting: 5\n  total: 17"

LINES = [
    Line('queue.put("hello")', "- [ID, 'R', ['hello']]"),
    Line('queue.put("my","data",1,2,3)', "- [ID, 'R', ['my', 'data', 1, 2, 3]]"),
    Line('queue.put({ complex = { struct = "data" }})', "- [ID, 'R', [{'complex': {'struct': 'data'}}]]"),
    Line(
        "box.space.queue:select()",
        "- - [ID, 'R', ['hello']]\n  - [ID, 'R', ['my', 'data', 1, 2, 3]]\n"
        "  - [ID, 'R', [{'complex': {'struct': 'data'}}]]",
    ),
    Line('queue.put("my","data",1,2,3)', "- [ID, 'R', ['my', 'data', 1, 2, 3]]", before=NEW),
    Line("queue.take()", "- [ID, 'T', ['my', 'data', 1, 2, 3]]"),
    Line("queue.take()", ""),
    Line("box.space.queue:select()", "- - [ID, 'T', ['my', 'data', 1, 2, 3]]"),
    Line('queue.put("task 1")', "- [ID, 'R', ['task 1']]", before=NEW),
    Line('queue.put("task 2")', "- [ID, 'R', ['task 2']]"),
    Line(TAKE_ONE, "- [ID, 'T', ['task 1']]"),
    Line("queue.release(task.id)", "- [ID, 'R', ['task 1']]"),
    Line(TAKE_ONE, "- [ID, 'T', ['task 1']]"),
    Line("queue.ack(task.id)", "- [ID, 'T', ['task 1']]"),
    Line(TAKE_ONE, "- [ID, 'T', ['task 2']]"),
    Line("queue.ack(task.id)", "- [ID, 'T', ['task 2']]"),
    Line(TAKE_ONE, "- null"),
    Line(WAIT.format(number=3), "- [ID, 'T', ['task 3']]\n- wait: TIME", before="queue.wakes = false"),
    Line(WAIT.format(number=4), "- [ID, 'T', ['task 4']]\n- wait: TIME", before="queue.wakes = true"),
    Line("box.space.queue:select()", "- - [ID, 'T', ['task 4']]"),
    *(Line(statement, "") for statement in ("t = {}", "t[1] = 1", 't["1"] = 2')),
    *(Line(statement, "") for statement in ("t[1LL] = 3", "t[1ULL] = 4", "t[1ULL] = 5")),
    Line("t", "- 1: 1\n  1: 5\n  1: 4\n  '1': 2\n  1: 3", is_unordered=True),
    Line("return t[1], t['1'], t[1LL], t[1ULL]", "- 1\n- 2\n- null\n- null"),
    Line("queue.stats()", STATS, is_unordered=True, before=f"{NEW} {MANY}"),
    Line(
        "local clock = require 'clock' local s = clock.time() local r = queue.stats() "
        "return r, clock.time() - s",
        f"{STATS}\n- TIME",
        is_unordered=True,
    ),
]


@pytest.fixture(params=[OURS, SERVED, pytest.param(REAL, marks=pytest.mark.real_tarantool)])
def application(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    put_files(tmp_path, HERE / "stage")
    with running(request.param, tmp_path) as application:
        yield application


def shown(answer: str, *, is_unordered: bool) -> str | list[str]:
    """What has to be equal of an answer."""
    return sorted(line.lstrip("- ") for line in answer.splitlines()) if is_unordered else answer


def test_each_line_is_answered_as_printed(application: Running) -> None:
    for line in LINES:
        if line.before:
            application.ask(line.before)
        answer = masked(application.ask(line.statement).partition("\n...\n")[0].removeprefix("---"))
        wanted = shown(line.answer, is_unordered=line.is_unordered)
        assert shown(answer, is_unordered=line.is_unordered) == wanted, line.statement


def test_these_are_all_lines_of_the_text() -> None:
    """Spaces apart; what the text prints after each is what is expected here."""
    text = re.sub("[\N{NO-BREAK SPACE} ]+\n", "\n", tutorial_text().replace("\N{NO-BREAK SPACE}", " "))
    parts = re.findall(
        r"^tarantool> (.+?)\n(?=tarantool> |---\n)(?:---\n(.*?)\n?\.\.\.$)?", text, re.M | re.S
    )
    in_text = [(re.sub(r"\s+", " ", statement).strip(), masked(answer)) for statement, answer in parts]
    here = [(re.sub(r"\s+", " ", line.statement), masked(line.answer)) for line in LINES]
    known = {statement for statement, _ in here}
    assert [statement for statement, _ in in_text if statement not in known] == []
    for statement, answer in in_text:
        if answer and "select" not in statement:
            assert (statement, answer) in here
