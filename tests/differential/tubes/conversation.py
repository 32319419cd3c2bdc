"""Random calls of clients to a server of tubes, valid and invalid, drawn by Hypothesis."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

TUBE: Final = "tube"
PEOPLE: Final = ("ann", "bob", "cid")
TYPES: Final = ("fifo", "fifottl", "limfifottl", "utube", "utubettl")
HOUR: Final = 3600
"""All times are multiples of it, so that nothing becomes due meanwhile, and rounded ones are equal."""

WAITING: Final = 30
"""The timeout in seconds of calls that are to keep waiting."""


class SessionOf(NamedTuple):
    """Stands for the UUID of a client's session.

    Attributes:
        who: The client.
    """

    who: str


class Step(NamedTuple):
    """A call or another action of a client.

    Attributes:
        who: The client.
        action: The method of the tube, `queue.…` for one of the queue, "wait" for a take that waits, "leave".
        arguments: Of the call.
    """

    who: str
    action: str
    arguments: tuple[Any, ...] = ()


PAUSE: Final = Step("nobody", "pause")
"""Replaces a step that is not needed to show a difference."""

WRONG: Final = st.sampled_from(
    [True, False, "", "text", "5", b"x", -1, -1.5, 0.5, 2**63, 1e300, [], [1], {}, {"a": 1}]
)
"""Values of unexpected types."""

WRONG_TIME: Final = WRONG.filter(lambda value: value != 0.5)
"""Half a second would end during the test."""

IDS: Final = st.integers(0, 5) | st.integers(0, 5).map(float) | WRONG
HOURS: Final = st.sampled_from([HOUR, 10 * HOUR, 99 * HOUR, 10**10, 10**12])
NO_TIME: Final = st.sampled_from([0, -1, 0.0, -0.5])
DATA: Final = st.sampled_from(["work", 1, None, [1, "two"], {"a": [None]}, 2.5, True])

TIMES: Final = st.fixed_dictionaries(
    {},
    optional={
        "ttl": HOURS | st.just(False),
        "ttr": HOURS | st.just(False),
        "pri": st.sampled_from([0, 1, 2, 2.0, 100, False]),
        "delay": HOURS | NO_TIME,
        "timeout": NO_TIME,
        "utube": st.sampled_from(["a", "b", ""]),
        "unknown": WRONG,
    },
)
WRONG_TIMES: Final = st.dictionaries(
    st.sampled_from(["ttl", "ttr", "pri", "delay", "timeout", "utube"]), WRONG_TIME, min_size=1, max_size=2
)
OPTIONS: Final = st.tuples() | st.tuples(TIMES) | st.tuples(WRONG_TIMES) | st.tuples(WRONG)

_TUBES_OPTIONS: Final = st.fixed_dictionaries(
    {},
    optional={
        "ttl": HOURS,
        "ttr": HOURS,
        "pri": st.sampled_from([0, 1, 7]),
        "capacity": st.sampled_from([0, 1, 3]),
        "temporary": st.booleans(),
        "if_not_exists": st.booleans(),
    },
)


def _step(who: str, action: str, arguments: tuple[Any, ...]) -> Step:
    return Step(who, action, arguments)


def _steps(action: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.builds(_step, st.sampled_from(PEOPLE), st.just(action), st.tuples(*arguments))


def _called(action: str, arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.builds(_step, st.sampled_from(PEOPLE), st.just(action), arguments)


USUAL: Final = st.one_of(
    _called("put", st.builds(lambda data, options: (data, *options), DATA, st.tuples() | st.tuples(TIMES))),
    _steps("take", st.just(0)),
    _steps("take", st.just(0)),
    _steps("wait"),
    *(_steps(action, st.integers(0, 3)) for action in ("ack", "release", "bury", "delete", "peek")),
    _steps("release", st.integers(0, 3), st.fixed_dictionaries({"delay": HOURS})),
    _steps("kick", st.integers(1, 3)),
    _steps("touch", st.integers(0, 3), HOURS),
)

RARE: Final = st.one_of(
    _called("put", st.tuples() | st.builds(lambda data, options: (data, *options), DATA, OPTIONS)),
    _called("take", st.tuples(NO_TIME | st.just(0.01))),
    _called("take", st.tuples(WRONG.filter(lambda time: time not in (False, 2**63, 1e300, 0.5, True)))),
    *(
        _called(action, st.tuples() | st.tuples(IDS))
        for action in ("ack", "release", "bury", "delete", "peek", "touch")
    ),
    _steps("release", IDS, st.one_of(TIMES, WRONG_TIMES, WRONG)),
    _steps("touch", IDS, st.one_of(HOURS, NO_TIME, WRONG)),
    _called("kick", st.tuples() | st.tuples(IDS)),
    _steps("release_all"),
    _steps("truncate"),
    _steps("drop"),
    _steps("nothing"),
    _steps("leave"),
    _steps("queue.identify"),
    _steps("queue.identify", st.sampled_from(PEOPLE).map(SessionOf)),
    _steps("queue.identify", WRONG | st.just(b"\x00" * 16) | st.just("a" * 16)),
    _steps("queue.cfg", st.sampled_from([{}, {"ttr": 0}, {"ttr": HOUR}, {"in_replicaset": False}])),
    _steps(
        "queue.cfg",
        st.dictionaries(st.sampled_from(["ttr", "in_replicaset", "colour"]), WRONG_TIME, max_size=1),
    ),
    _steps("queue.statistics"),
    _steps("queue.statistics", st.just("nowhere") | WRONG),
    _steps("queue.state"),
    _steps("queue.tube"),
    _steps("queue.tube", st.sampled_from([TUBE, "nowhere"]) | WRONG),
    _steps("queue.create_tube", st.just(TUBE), st.sampled_from(TYPES), _TUBES_OPTIONS),
    _steps("queue.create_tube", st.just(TUBE), WRONG),
    _called("queue.nothing", st.tuples()),
    _steps("put", DATA, st.dictionaries(st.sampled_from(["ttl", "pri", "delay"]), st.none(), min_size=1)),
    _steps("queue.tube", st.none()),
)

conversations: Final = st.tuples(
    st.sampled_from(TYPES),
    _TUBES_OPTIONS,
    st.lists(st.one_of(st.just(PAUSE), USUAL, USUAL, USUAL, RARE), min_size=25, max_size=40),
)
"""The type and the options of a tube, and what is said when it is there."""
