"""Properties and settings of the instance: a real Tarantool and our server behave alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.differential.both import Both
from tests.iproto_client import CALL, DELETE, FUNCTION_NAME, INSERT, KEY, REPLACE, SPACE_ID, TUPLE, Answer

SPACE = "read_only"


@pytest.fixture
def read_only(both: Both) -> Iterator[Both]:
    """Both servers with three spaces, read-only."""
    for name, options in (("plain", {}), ("temporary", {"temporary": True}), ("local", {"is_local": True})):
        both.prepare("box.schema.create_space", f"{SPACE}_{name}", options)
        both.prepare(f"box.space.{SPACE}_{name}:create_index", "primary")
        both.call(f"box.space.{SPACE}_{name}:insert", [1])
    both.call("box.cfg", {"read_only": True})
    yield both
    both.call("box.cfg", {"read_only": False})
    for name in ("plain", "temporary", "local"):
        both.prepare(f"box.space.{SPACE}_{name}:drop")


def pushed(both: Both, *arguments: object) -> list[list[Answer]]:
    """Return the result of a client's own `box.session.push` on both servers, up to the answer."""
    outcomes = []
    for client in (both.ours, both.theirs):
        sync = client.send(CALL, {FUNCTION_NAME: "box.session.push", TUPLE: list(arguments)})
        answers = [client.receive()]
        while answers[-1].status == 0x80:
            answers.append(client.receive())
        assert {answer.sync for answer in answers} == {sync}
        outcomes.append(answers)
    return outcomes


@pytest.mark.parametrize("message", [1, None, "text", [1, [2]], {"a": 1}, 2**63, 1.5])
def test_a_pushed_message_has_the_same_bytes(both: Both, message: object) -> None:
    ours, theirs = pushed(both, message)
    assert [answer.raw_body for answer in ours] == [answer.raw_body for answer in theirs]
    assert [answer.status for answer in ours] == [answer.status for answer in theirs] == [0x80, 0]
    assert ours[0].header_size == theirs[0].header_size


@pytest.mark.parametrize("arguments", [[], [1, 2]])
def test_a_message_is_one_argument(both: Both, arguments: list[object]) -> None:
    both.call("box.session.push", *arguments)


CHANGES: list[tuple[str, list[Any]]] = [
    (":insert", [[2]]),
    (":insert", [[1]]),
    (":insert", [["wrong"]]),
    (":replace", [[1]]),
    (":update", [1, [["=", 2, 2]]]),
    (":update", [9, [["=", 2, 2]]]),
    (":upsert", [[1], [["=", 2, 2]]]),
    (":delete", [1]),
    (":delete", [9]),
    (":select", []),
]


def test_a_read_only_instance_refuses_what_is_everybody_s_business(read_only: Both) -> None:
    for name in ("plain", "temporary", "local"):
        for method, arguments in CHANGES:
            read_only.call(f"box.space.{SPACE}_{name}{method}", *arguments)
    for name in ("plain", "temporary"):
        read_only.call(f"box.space.{SPACE}_{name}:truncate")
    read_only.call("box.schema.create_space", "another")
    read_only.call("box.schema.create_space", "another", {"temporary": True})
    read_only.call("box.schema.user.create", "nobody")
    for kind, body in (
        (INSERT, {SPACE_ID: 280, TUPLE: [1]}),
        (REPLACE, {SPACE_ID: 281, TUPLE: [1]}),
        (DELETE, {SPACE_ID: 280, KEY: [1]}),
        (DELETE, {SPACE_ID: 99999, KEY: [1]}),
    ):
        read_only.request(kind, body)


REFUSED: list[Any] = [
    {"wal_dir": "x"},
    {"wal_mode": "fsync"},
    {"wal_max_size": 1},
    {"work_dir": "elsewhere"},
    {"nosuch": 1},
    {"read_only": "x"},
    {"read_only": 1},
    {"net_msg_max": "x"},
    {"net_msg_max": True},
    {"net_msg_max": 1},
    {"log_level": "x"},
    {"log_level": True},
    {"log_format": "x"},
    {"log_format": 5},
    {"checkpoint_count": 0},
    {"checkpoint_count": "2"},
    {"checkpoint_interval": "x"},
    {"force_recovery": 1},
    {"snap_io_rate_limit": []},
    {"wal_dir": 5},
    [5],
]


def test_wrong_options_are_refused_alike(both: Both) -> None:
    for options in REFUSED:
        both.call("box.cfg", options)
    taken: list[list[Any]] = [
        [],
        [{}],
        [{"force_recovery": False}],
        [{"read_only": False}],
        [{"net_msg_max": 768}],
    ]
    for arguments in taken:
        both.call("box.cfg", *arguments)


@pytest.mark.parametrize(
    "function", ["box.info", "box.info.memory", "box.info.gc", "box.slab.info", "box.runtime.info"]
)
def test_what_is_told_has_all_that_2_6_tells(both: Both, function: str) -> None:
    ours, theirs = both.ours.call(function).data[0], both.theirs.call(function).data[0]
    missing = theirs.keys() - ours.keys() - {"vinyl"}
    assert not missing
    for name in theirs.keys() & ours.keys() - {"gc", "memory", "sql", "vinyl"}:
        assert type(ours[name]) is type(theirs[name]), name


def test_memory_is_told_in_the_same_form(both: Both) -> None:
    ours, theirs = both.ours.call("box.slab.info").data[0], both.theirs.call("box.slab.info").data[0]
    assert list(ours) == list(theirs) or ours.keys() == theirs.keys()
    for told in (ours, theirs):
        assert 0 < told["items_used"] <= told["items_size"] <= told["arena_size"] <= told["quota_used"]
        assert told["items_used"] <= told["arena_used"] <= told["arena_size"]
        assert told["quota_used"] <= told["quota_size"]
        for name, decimals in (("items", 2), ("arena", 1), ("quota", 2)):
            share = 100 * told[f"{name}_used"] / told[f"{name}_size"]
            assert told[f"{name}_used_ratio"] == f"{share:.{decimals}f}%", name


@pytest.mark.parametrize("function", ["box.stat", "box.stat.net"])
def test_what_is_counted_has_all_that_2_6_counts(both: Both, function: str) -> None:
    ours, theirs = both.ours.call(function).data[0], both.theirs.call(function).data[0]
    for name, counted in theirs.items():
        assert ours[name].keys() == counted.keys()


def test_what_cannot_be_called_is_refused_alike(both: Both) -> None:
    for name in ("box.info.ro", "box.info.listen", "box.info.nosuch", "box.cfg.read_only", "box.slab.nosuch"):
        both.call(name)
