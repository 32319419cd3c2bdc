"""Deliberate differences between our tubes and the module's.

Waiting clients are served first come, first served; the module serves the one with the earliest deadline.
Clients here wait equally long.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tests.differential.tubes.conversation import Step


class Deliberate(NamedTuple):
    """A deliberate difference.

    Attributes:
        reason: The reason for it.
        applies: Tells from the step and what is seen of ours and of theirs, an answer or all there is,
            whether this is it.
        after: A call that must have been made before.
        is_over: Whether the servers' states differ then, which ends the comparison.
        between_modules: Whether it is there between modules of Lua, too, here and in a real Tarantool.
    """

    reason: str
    applies: Callable[[Step, object, object], bool]
    after: str = ""
    is_over: bool = False
    between_modules: bool = False


DELIBERATE: Final[list[Deliberate]] = [
    Deliberate(
        "a tube cannot be sent, and which of its fields is named depends on the order of a table of LuaJIT",
        lambda step, ours, theirs: all("unsupported Lua type" in str(each) for each in (ours, theirs)),
        between_modules=True,
    ),
    Deliberate(
        "create_tube answers what the tube is; the module's answer cannot be sent",
        lambda step, ours, theirs: "unsupported Lua type" in str(theirs),
    ),
    Deliberate(
        "what cannot be a name is shown as what it is, not by its address, and nil as nil",
        lambda step, ours, theirs: bool(re.search(r"cdata<void \*>: NULL|table: ADDRESS", str(theirs))),
    ),
    Deliberate(
        "nil stands for an argument that is left out",
        lambda step, ours, theirs: step.action == "queue.tube" and step.arguments == (None,),
    ),
    Deliberate(
        "in utube the module's kick leaves a transaction open",
        lambda step, ours, theirs: step.action == "kick" and "Transaction is active" in str(theirs),
    ),
    Deliberate(
        "a released task of utubettl lives on; the module multiplies the end of its life beyond 64 bits",
        lambda step, ours, theirs: _differ_in_next_event(ours, theirs),
        is_over=True,
        between_modules=True,
    ),
    Deliberate(
        "nil stands for what is left out; Lua's box.NULL is true, and the module stumbles over it",
        lambda step, ours, theirs: any(_has(argument, None) for argument in step.arguments),
        is_over=True,
    ),
    Deliberate(
        "no statistics are an empty map, as some are a map; Lua takes an empty table for a list",
        lambda step, ours, theirs: step.action == "queue.statistics" and theirs == ("answer", [[]]),
    ),
    Deliberate(
        "a time beyond 64 bits is for ever; the module's begins again at 0",
        lambda step, ours, theirs: any(
            _has(argument, value) for argument in step.arguments for value in (2**63, 1e300)
        ),
        is_over=True,
    ),
    Deliberate(
        "a put without a task is refused, whether there is room or not",
        lambda step, ours, theirs: step == Step(step.who, "put") and theirs == ("answer", [None]),
    ),
    Deliberate(
        "the session of one who leaves ends; the module fails at the first task that truncate has removed",
        lambda step, ours, theirs: step.action in ("leave", "queue.identify"),
        after="truncate",
        is_over=True,
    ),
    Deliberate(
        "kick answers a number; the module answers the text that it was given",
        lambda step, ours, theirs: step.action == "kick" and isinstance(step.arguments[0], str),
    ),
    Deliberate(
        "a number beyond Lua's is a number; for the module it is an object of C, whose fields are no options",
        lambda step, ours, theirs: all(
            isinstance(each, tuple) and each[0] == "error" and text in str(each)
            for each, text in ((ours, "attempt to index local"), (theirs, "has no member named"))
        ),
    ),
    Deliberate(
        "errors name the argument, what was given and what is allowed",
        lambda step, ours, theirs: _is_about_an_argument(ours, theirs),
    ),
    Deliberate(
        "a sub-queue's name is a scalar; the module takes the address of a table for one",
        lambda step, ours, theirs: "utube must be a text" in str(ours),
        is_over=True,
    ),
    Deliberate(
        "kick answers how many, which is a whole number",
        lambda step, ours, theirs: step.action == "kick" and isinstance(step.arguments[0], float),
    ),
]


def _is_about_an_argument(ours: Any, theirs: Any) -> bool:
    """Whether both are errors with the same number, and the text of ours is about an argument."""
    if not (isinstance(ours, tuple) and isinstance(theirs, tuple) and ours[0] == theirs[0] == "error"):
        return False  # not an answer, but what there is
    return bool(ours[1][0] == theirs[1][0] and " must be a" in ours[1][1])


def _has(argument: object, value: object) -> bool:
    """Whether an option has that value."""
    return isinstance(argument, dict) and value in argument.values()


def _differ_in_next_event(ours: object, theirs: object) -> bool:
    """Whether tasks of sub-queues with times are the same but for the moments at which something is due."""
    without = []
    for side in (ours, theirs):
        tasks = side.get("tasks") if isinstance(side, dict) else None
        if not isinstance(tasks, list) or any(len(task) != 8 for task in tasks):
            return False
        without.append([[*task[:2], *task[3:]] for task in tasks])
    return without[0] == without[1]
