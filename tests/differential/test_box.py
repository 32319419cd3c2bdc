"""Requests on spaces, asked of a real Tarantool and of ours: the same bytes, or the same error."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.differential.both import Both
from tests.iproto_client import (
    DELETE,
    INDEX_ID,
    INSERT,
    ITERATOR,
    KEY,
    LIMIT,
    OFFSET,
    OPERATIONS,
    REPLACE,
    SELECT,
    SPACE_ID,
    TUPLE,
    UPDATE,
    UPSERT,
)

SPACE = 700
SPACE_NAME = "differential"


@dataclass(frozen=True, slots=True)
class Layout:
    """A space's fields and indexes, the first of them the primary.

    Args:
        name: What it is about.
        fields: The format.
        indexes: The options of `create_index`, by the index's name.
    """

    name: str
    fields: list[dict[str, Any]]
    indexes: dict[str, dict[str, Any]]


LAYOUTS = [
    Layout(
        "one unique index, no format",
        [],
        {"primary": {"parts": [[1, "unsigned"]]}},
    ),
    Layout(
        "secondary indexes, unique and not",
        [
            {"name": "id", "type": "unsigned"},
            {"name": "word", "type": "string"},
            {"name": "size", "type": "integer"},
        ],
        {
            "primary": {"parts": [[1, "unsigned"]]},
            "word": {"parts": [[2, "string"]]},
            "size": {"parts": [[3, "integer"]], "unique": False},
            "word and size": {"parts": [[2, "string"], [3, "integer"]]},
        },
    ),
    Layout(
        "parts out of order in the primary index",
        [{"name": "a", "type": "string"}, {"name": "b", "type": "any"}, {"name": "c", "type": "number"}],
        {
            "primary": {"parts": [[3, "number"], [1, "string"]]},
            "by a": {"parts": [[1, "string"]], "unique": False},
        },
    ),
    Layout(
        "nullable parts",
        [
            {"name": "id", "type": "unsigned"},
            {"name": "maybe", "type": "string", "is_nullable": True},
            {"name": "perhaps", "type": "scalar", "is_nullable": True},
        ],
        {
            "primary": {"parts": [[1, "unsigned"]]},
            "maybe": {"parts": [{"field": 2, "type": "string", "is_nullable": True}]},
            "both": {
                "parts": [
                    {"field": 3, "type": "scalar", "is_nullable": True},
                    {"field": 2, "type": "string", "is_nullable": True},
                ],
                "unique": False,
            },
        },
    ),
    Layout(
        "hash",
        [{"name": "id", "type": "unsigned"}, {"name": "word", "type": "string"}],
        {
            "primary": {"type": "hash", "parts": [[1, "unsigned"]]},
            "word": {"type": "hash", "parts": [[2, "string"], [1, "unsigned"]]},
        },
    ),
    Layout(
        "scalar primary key",
        [{"name": "key", "type": "scalar"}, {"name": "flag", "type": "boolean"}],
        {
            "primary": {"parts": [[1, "scalar"]]},
            "flag": {"parts": [[2, "boolean"]], "unique": False},
        },
    ),
]

WORDS = ["", "a", "b", "a\0", "aa", "z", "ä", "\U0001f600"]
NUMBERS: list[Any] = [0, 1, 2, 3, -1, -(2**63), 2**63, 2**64 - 1, 0.5, 1.0, -0.5, 1e300]
ODD: list[Any] = [None, True, False, b"bin", [], {}, [1], {"k": 1}]


@pytest.fixture
def make_space(both: Both) -> Iterator[Callable[[Layout], Both]]:
    """Makes the space on both servers; it is dropped at the end."""

    def make(layout: Layout) -> Both:
        both.prepare("box.schema.create_space", SPACE_NAME, {"id": SPACE, "format": layout.fields})
        for name, options in layout.indexes.items():
            both.call(f"box.space.{SPACE_NAME}:create_index", name, options)
        return both

    yield make
    both.prepare(f"box.space.{SPACE_NAME}:drop")


class Requests:
    """Makes up requests that are mostly sensible for a layout, and now and then not.

    Args:
        layout: The space.
        seed: What the requests follow from.
    """

    def __init__(self, layout: Layout, seed: int) -> None:
        self.layout = layout
        self.random = random.Random(seed)

    def value(self, field_type: str) -> Any:
        if self.random.random() < 0.04:
            return self.random.choice([*WORDS, *NUMBERS, *ODD])
        match field_type:
            case "unsigned":
                return self.random.choice([0, 1, 2, 3, 4, 5, 6, 7, 2**63, 2**64 - 1])
            case "integer":
                return self.random.choice([number for number in NUMBERS if isinstance(number, int)])
            case "number":
                return self.random.choice(NUMBERS)
            case "string":
                return self.random.choice(WORDS)
            case "boolean":
                return self.random.choice([True, False])
            case "scalar":
                return self.random.choice([*WORDS, *NUMBERS, True, False, b"", b"bin"])
        return self.random.choice([*WORDS, *NUMBERS, *ODD])

    def row(self) -> list[Any]:
        types = [field["type"] for field in self.layout.fields] or ["unsigned", "any"]
        row = [self.value(field_type) for field_type in types]
        for number, field in enumerate(self.layout.fields):
            if field.get("is_nullable") and self.random.random() < 0.4:
                row[number] = None
        match self.random.random():
            case chance if chance < 0.03:
                row.pop()
            case chance if chance < 0.1:
                row.append(self.random.choice(ODD))
        return row

    def key(self, index: int) -> list[Any]:
        parts = list(self.layout.indexes.values())[index]["parts"]
        types = [part["type"] if isinstance(part, dict) else part[1] for part in parts]
        key = [None if self.random.random() < 0.1 else self.value(field_type) for field_type in types]
        match self.random.random():
            case chance if chance < 0.25:
                return key[: self.random.randrange(len(key))]
            case chance if chance < 0.28:
                return [*key, 1]
        return key

    def operations(self) -> list[list[Any]]:
        count = self.random.choice([1, 1, 1, 2, 3])
        return [self.operation() for _ in range(count)]

    def operation(self) -> list[Any]:
        types = [field["type"] for field in self.layout.fields] or ["unsigned", "any"]
        number = self.random.randrange(len(types) + 1)
        field_type = types[number] if number < len(types) else "any"
        match self.random.choice("====+-#!"):
            case "=":
                return ["=", number, self.value(field_type)]
            case "!":
                return ["!", number, self.value(field_type)]
            case "#":
                return ["#", number, 1]
            case sign:
                return [sign, number, self.random.choice([1, 2, 0.5])]

    def request(self) -> tuple[int, dict[int, Any]]:
        index = self.random.randrange(len(self.layout.indexes))
        match self.random.choice(
            [INSERT, REPLACE, REPLACE, UPDATE, UPDATE, UPSERT, DELETE, SELECT, SELECT, SELECT]
        ):
            case kind if kind in (INSERT, REPLACE):
                return kind, {SPACE_ID: SPACE, TUPLE: self.row()}
            case kind if kind == UPDATE:
                return kind, {
                    SPACE_ID: SPACE,
                    INDEX_ID: index,
                    KEY: self.key(index),
                    TUPLE: self.operations(),
                }
            case kind if kind == UPSERT:
                return kind, {SPACE_ID: SPACE, TUPLE: self.row(), OPERATIONS: self.operations()}
            case kind if kind == DELETE:
                return kind, {SPACE_ID: SPACE, INDEX_ID: index, KEY: self.key(index)}
        return self.select(index)

    def select(self, index: int) -> tuple[int, dict[int, Any]]:
        hashed = list(self.layout.indexes.values())[index].get("type") == "hash"
        # the order of a hash is its own affair, so no more than one row is asked of it
        iterator = 0 if hashed else self.random.choice([0, 0, 1, 2, 3, 4, 5, 6, 7, 11, 12])
        key = self.key(index)
        limit = self.random.choice([0, 1, 2, 100, 2**32 - 1])
        body = {SPACE_ID: SPACE, INDEX_ID: index, LIMIT: limit, KEY: key, ITERATOR: iterator}
        if hashed and not key:
            body[LIMIT] = 0
        if self.random.random() < 0.2:
            body[OFFSET] = self.random.choice([0, 1, 3, 1000])
        return SELECT, body


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_any_requests(make_space: Callable[[Layout], Both], layout: Layout, seed: int) -> None:
    both = make_space(layout)
    requests = Requests(layout, seed)
    for _ in range(300):
        both.request(*requests.request())
    hashed = any(options.get("type") == "hash" for options in layout.indexes.values())
    for index in range(0 if hashed else len(layout.indexes)):
        both.request(SELECT, {SPACE_ID: SPACE, INDEX_ID: index, LIMIT: 1000, ITERATOR: 2, KEY: []})
