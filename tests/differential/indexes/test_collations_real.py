"""Indexes with collations: a real Tarantool and our server order strings alike, and refuse the same ones."""

from __future__ import annotations

import random
import unicodedata
from typing import Any, Final

import msgpack
import pytest

from iproto_server.box.key.collation import built_in_collations
from tests.differential.both import Both
from tests.differential.ddl.system_rows import COLLATION
from tests.differential.indexes.space_pair import ALL, EQ, SpacePair, part
from tests.iproto_client import DELETE, INDEX_ID, INSERT, KEY, REPLACE, SPACE_ID, TUPLE, UPDATE

UNICODE, UNICODE_CI = 1, 2


def text_part(field: int, collation: int, kind: str = "string", **options: Any) -> dict[str, Any]:
    return part(field, kind, collation=collation, **options)


def _symbols(*ranges: range) -> list[str]:
    return [chr(number) for each in ranges for number in each if unicodedata.category(chr(number)) != "Cs"]


ALPHABETS: Final = [
    _symbols(range(0x30000)),
    _symbols(range(0x250), range(0x300, 0x500)),
    _symbols(range(0x1F300, 0x1F6FF), range(0x200C, 0x200F), range(0xFE0E, 0xFE10)),
    _symbols(range(0x3040, 0x30FF), range(0x4E00, 0x9FFF, 13), range(0xAC00, 0xD7A3, 97)),
    list("abcABCéÉ -'."),
    list("abcAB\u0301\u0308\u0327\u00ad\u200b\0"),
    list("0123456789aя"),
]


def texts(seed: int, count: int) -> list[str]:
    """Different texts of every sort: letters, accents, ignored symbols, unassigned ones, none at all."""
    draw = random.Random(seed)
    found = dict.fromkeys(["", "\0", "a\0", "a\0b"])
    while len(found) < count:
        found["".join(draw.choices(draw.choice(ALPHABETS), k=draw.randrange(7)))] = None
    return list(found)


@pytest.mark.parametrize("collation", [1, 2, 3, *range(4, 277, 13)])
def test_texts_are_in_the_same_order(both: Both, collation: int) -> None:
    space = SpacePair(both)
    space.index(1, text_part(1, collation), unique=False)
    sample = texts(collation, 1000)
    for number, text in enumerate(sample):
        space.insert(number, text)
    space.select(1, iterator=ALL)
    for text in sample[:50]:
        space.select(1, text, iterator=EQ)


def test_every_collation_that_is_built_in_can_be_used(both: Both) -> None:
    for collation in built_in_collations():
        space = SpacePair(both, primary=[text_part(0, collation)])
        for text in ("a", "A", "á", "b", "ch", "cz", "ä", "z", "œ", "ı", "I", "и", "й", "ё"):
            space.insert(text)
        space.select()


@pytest.mark.parametrize(
    "text",
    [
        *(
            b"\xff",
            b"\xed\xa0\x80",
            b"\xc3",
            b"a\xffb",
            b"a\xe2\x82b",
            b"\xf0\x9f\x98",
            b"\xc0\x80",
            b"\xc3(",
        ),
        *(
            b"\xf8\x88\x80\x80\x80",
            b"\xf4\x90\x80\x80",
            b"\xe0\x80\x80",
            b"\xef\xbf\xbd",
            b"\xef\xbf\xbd" * 2,
        ),
    ],
)
def test_bytes_that_are_no_utf_8_are_in_the_same_order(both: Both, text: bytes) -> None:
    space = SpacePair(both)
    space.index(1, text_part(1, UNICODE), unique=False)
    for number, other in enumerate(
        (b"", b"a", b"z", b"\xef\xbf\xbd", b"\xef\xbf\xbd" * 2, b"\xef\xbf\xbc", text)
    ):
        space.insert_packed(b"\x92" + msgpack.packb(number) + bytes((0xA0 + len(other),)) + other)
    space.select(1)


def test_a_primary_key_that_ignores_case(both: Both) -> None:
    space = SpacePair(both, primary=[text_part(0, UNICODE_CI)])
    space.index(1, text_part(1, UNICODE), part(2))
    for row in (
        ["a", "x", 1],
        ["A", "x", 2],
        ["á", "x", 2],
        ["a\u0301", "x", 2],
        ["b", "x", 1],
        ["b", "X", 1],
    ):
        space.insert(*row)
    space.insert("\u00ad", "q", 1)
    space.insert("", "q", 2)
    space.select_with_all_iterators(0, [], ["B"], ["Ā"], ["c"])
    space.select_with_all_iterators(1, [], ["X"], ["x", 1])
    space.update(["A"], ["=", 2, 5])
    space.update(["A"], ["=", 0, "Á"])
    space.update(["B"], ["=", 0, "c"])
    space.update(["B"], ["=", 1, "q"])
    space.replace("Á", "w", 8)
    space.upsert(["B", "n", 1], ["=", 2, 77])
    space.upsert(["B", "n", 1], ["=", 0, "Ḃ"])
    space.select()
    space.delete("à")
    space.select(1)


def test_indexes_of_one_field_with_several_collations(both: Both) -> None:
    for primary in (part(0, "string"), text_part(0, UNICODE_CI), text_part(0, UNICODE)):
        space = SpacePair(both, primary=[primary])
        for number, other in enumerate((part(0, "string"), *(text_part(0, each) for each in (1, 2, 5))), 1):
            space.index(number, other, unique=False)
        for text in ("a", "A", "á", "b", "B", "ab"):
            space.insert(text)
        for number in range(5):
            space.select_with_all_iterators(number, [], ["a"], ["B"])


def test_scalars_nil_and_texts(both: Both) -> None:
    space = SpacePair(both)
    space.index(1, text_part(1, UNICODE_CI, "scalar", is_nullable=True))
    for number, value in enumerate(("a", "A", 1, None, None, b"A", b"a", True, "B", 1.0, 1.5, -1, "")):
        space.insert(number, value)
    space.select_with_all_iterators(1, [], ["b"], [None], [True], [1], [b"A"])


def test_hash_indexes_with_collations(both: Both) -> None:
    space = SpacePair(both, primary=[text_part(0, UNICODE_CI)], kind="hash")
    space.index(1, text_part(1, UNICODE), kind="hash")
    space.index(2, text_part(1, UNICODE, is_nullable=True), kind="hash")
    for row in (["a", "A"], ["A", "b"], ["b", "a"], ["c", "a"], ["c", "é"], ["d", "e\u0301"]):
        space.insert(*row)
    for index, key in ((0, "A"), (0, "á"), (1, "e\u0301"), (1, "e")):
        space.select(index, key)
    for iterator in (1, 3, 4, 5, 7, 11, 12):
        space.select(0, "A", iterator=iterator)
    space.select(0)
    space.select(0, "A", "B")


def test_altering_the_collation_of_an_index_with_rows_in_it(both: Both) -> None:
    space = SpacePair(both)
    space.index(1, part(1, "string"))
    for row in ([1, "a"], [2, "A"], [3, "b"]):
        space.insert(*row)
    space.alter(1, ["=", "parts", [text_part(1, UNICODE_CI)]])
    space.alter(1, ["=", "parts", [text_part(1, UNICODE)]])
    space.select(1)
    space.delete(2)
    space.alter(1, ["=", "parts", [text_part(1, UNICODE_CI)]])
    space.select(1, "A")
    space.insert(2, "A")
    space.alter(0, ["=", "parts", [text_part(1, UNICODE_CI)]])
    space.select(0, "B")
    for parts in ([part(0)], [part(1)], [part(2)], [part(2, is_nullable=True)]):
        space.alter(1, ["=", "parts", parts])
    space.alter(1, ["=", "parts", [part(2, is_nullable=True)]], ["=", "opts", {"unique": False}])
    space.select(1)
    space.alter(1, ["=", "opts", {"unique": True}])
    space.alter(0, ["=", "opts", {"unique": False}])
    space.alter(0, ["=", "type", "hash"])
    space.select(0, "A")
    space.alter(1, ["=", "type", "hash"])
    space.alter(1, ["=", "name", "renamed"])
    space.drop(0)


def test_collations_that_there_are_not(both: Both) -> None:
    space = SpacePair(both)
    for each in (277, 2**31, 2**32, -1, "unicode"):
        space.index(1, part(1, "string", collation=each))
    for kind in ("unsigned", "number", "boolean"):
        for collation in (0, 1, 3):
            if space.index(1, part(1, kind, collation=collation)).ok:
                space.drop(1)
    for collation in (0, 5, 1000):
        for kind in ("string", "unsigned", "any", "scalar"):
            fields = [{"name": "a", "type": kind, "collation": collation}]
            row = [40_000 + collation, 1, f"collated_{collation}_{kind}", "memtx", 0, {}, fields]
            if both.request(INSERT, {SPACE_ID: 280, TUPLE: row}).ok:
                both.request(DELETE, {SPACE_ID: 280, INDEX_ID: 0, KEY: [row[0]]})


@pytest.mark.parametrize(
    "row",
    [
        [502, "x", 1, "zz", "", {}],
        [502, "", 1, "ICU", "", {}],
        [502, "x" * 65_001, 1, "ICU", "", {}],
        [502, "x", 1, "ICU", "a" * 31, {}],
        [502, "x", 1, "ICU", "a\x01", {}],
        *(
            [502, "x", 1, "ICU", "", {option: value}]
            for option in (
                *("french_collation", "alternate_handling", "case_first", "case_level"),
                *("normalization_mode", "strength", "numeric_collation", "other"),
            )
            for value in ("default", "x", 1, True)
        ),
        [502, "x", 1, "ICU", "", {1: "primary"}],
        [502, "unicode", 1, "ICU", "", {}],
        [2, "x", 1, "ICU", "", {}],
        [502, "x", 1, "ICU", "", None],
        [502, "x", 1, "ICU", ""],
        [502, "x", 1, "ICU", 5, {}],
        [-1, "x", 1, "ICU", "", {}],
        ["x", "x", 1, "ICU", "", {}],
    ],
    ids=lambda row: str(row)[:60],
)
def test_rows_that_define_no_collation(both: Both, row: list[Any]) -> None:
    assert not both.request(INSERT, {SPACE_ID: COLLATION, TUPLE: row}).ok


def test_collations_of_users(both: Both) -> None:
    rows: list[list[Any]] = [
        [600, "numbers", 1, "ICU", "ru_RU", {"strength": "primary", "numeric_collation": "on"}],
        [601, "bytes", 1, "BINARY", "", {}],
        [602, "all", 1, "icu", "xx_nowhere", {"strength": "IDENTICAL", "case_first": "upper_first"}],
        [603, "shifted", 1, "ICU", "fr", {"alternate_handling": "shifted", "french_collation": "ON"}],
        [
            604,
            "levels",
            1,
            "ICU",
            "",
            {"case_level": "on", "strength": "primary", "normalization_mode": "ON"},
        ],
        [605, "quaternary", 1, "ICU", "", {"strength": "quaternary", "alternate_handling": "SHIFTED"}],
    ]
    for row in rows:
        assert both.request(INSERT, {SPACE_ID: COLLATION, TUPLE: row}).ok
        space = SpacePair(both, fields=[{"name": "a", "type": "string", "collation": row[0]}], primary=())
        space.index(0, text_part(0, row[0]))
        for text in ("a10", "a9", "A9", "a-11", "a11", "cote", "coté", "côte", "côté", "a 11", "A-11"):
            space.insert(text)
        space.select()
    both.request(REPLACE, {SPACE_ID: COLLATION, TUPLE: rows[0]})
    both.request(UPDATE, {SPACE_ID: COLLATION, INDEX_ID: 0, KEY: [600], TUPLE: [["=", 1, "other"]]})
    both.request(DELETE, {SPACE_ID: COLLATION, INDEX_ID: 0, KEY: [0]})
    both.request(INSERT, {SPACE_ID: COLLATION, TUPLE: [606, "unused", 1, "ICU", "", {}]})
    both.request(DELETE, {SPACE_ID: COLLATION, INDEX_ID: 0, KEY: [606]})
    SpacePair(both).index(1, text_part(1, 606))


def test_procedures_tell_of_collations(both: Both) -> None:
    space = SpacePair(both, fields=[{"name": "s", "type": "string", "collation": 2}], primary=())
    space.call(":create_index", "pk", {"parts": [{"field": "s", "collation": "unicode_ci"}]})
    space.call(":create_index", "plain", {"parts": [{"field": "s"}]})
    space.call(":create_index", "none", {"parts": [{"field": "s", "type": "string", "collation": "none"}]})
    space.call(":insert", ["Text"])
    space.call(".index.pk:get", ["TEXT"])
    space.call(".index.plain:get", ["TEXT"])
