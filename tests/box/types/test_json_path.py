"""Parsing of paths, and the reported positions of faults."""

from __future__ import annotations

import pytest

from iproto_server.box.types.json_path import TokenKind, parse_json_path
from tests.memory_peak import memory_peak


@pytest.mark.parametrize(
    ("path", "targets"),
    [
        ("", []),
        ("name", ["name"]),
        (".name", ["name"]),
        ("_1a", ["_1a"]),
        ("a.b.c", ["a", "b", "c"]),
        ("[1][20]", [0, 19]),
        ('a["b c"][\'d"\'][3].e', ["a", "b c", 'd"', 2, "e"]),
        ("имя.ё٣", ["имя", "ё٣"]),
        ("[99999999999999999999]", [2**31 - 2]),
        ("a[*]", ["a", None]),
    ],
)
def test_steps(path: str, targets: list[int | str | None]) -> None:
    *steps, end = parse_json_path(path)
    assert [step.target for step in steps] == targets
    assert end.kind is TokenKind.END


@pytest.mark.parametrize(
    ("path", "position"),
    [
        ("[", 1),
        ("a[", 2),
        ("[0]", 2),
        ("a[0]", 3),
        ("a[-1]", 3),
        ("a[1", 4),
        ("a[1 ]", 4),
        ("a[x]", 3),
        ("a[]", 3),
        ('a[""]', 4),
        ('a["b', 5),
        ('a["b"', 6),
        ('a["b"x]', 6),
        ("a.", 3),
        ("a..b", 3),
        ("a.1", 3),
        ("1", 1),
        (" a", 1),
        ("a b", 2),
        ("a]", 2),
        ("ёж[0]", 4),
        ("a\udcff", 2),
        ('a["\udcff"]', 4),
        ("[*", 3),
    ],
)
def test_faults_are_told_by_their_position_in_symbols(path: str, position: int) -> None:
    fault = parse_json_path(path)[-1]
    assert fault.kind is TokenKind.FAULT
    assert fault.end == position


def test_steps_before_a_fault_can_be_taken() -> None:
    first, second, fault = parse_json_path("a.b[")
    assert (first.target, second.target, fault.kind) == ("a", "b", TokenKind.FAULT)
    assert (second.start, second.end) == (1, 3)


def test_a_very_long_path_is_cut_too() -> None:
    assert len(parse_json_path("a" + ".b" * 1000)) == 1002
    assert parse_json_path("[" + "9" * 100_000 + "]")[0].target == 2**31 - 2


def test_a_path_of_a_million_steps_is_not_cut_further_than_values_are_nested() -> None:
    with memory_peak() as peak:
        *steps, end = parse_json_path("a" + "[1]" * 1_000_000)
    assert end.kind is TokenKind.FAULT
    assert 1024 < len(steps) < 2000
    assert peak.size < 8 * 2**20
