"""Spaces of every form."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tests.differential.ddl.system_rows import ADMIN, ALL, INDEX, SPACE, insert
from tests.differential.random.request import Request
from tests.differential.random.values.draws import Draws
from tests.differential.random.values.values import FIELD_TYPES, KEY_TYPES, value
from tests.iproto_client import INDEX_ID, ITERATOR, KEY, LIMIT, SELECT, SPACE_ID

NAMES: Final = ("a", "b", "c", "d", "ё", "a.b", "x y")
"""Names of fields. One looks like a path."""

_OTHERS: Final = {
    "any": KEY_TYPES,
    "scalar": KEY_TYPES[:-1],
    "number": ("number", "unsigned", "integer", "double", "decimal", "scalar"),
    "integer": ("integer", "unsigned", "number", "scalar"),
    "unsigned": ("unsigned", "integer", "number", "scalar"),
}
"""The types that an index may have on a field of a type, beside the field's own."""

_PATHS: Final = {"map": ["a", "b[1].c"], "array": ["[2]", "[*]", "[*].a"]}
"""Paths of indexes inside fields."""

_UNHASHED: Final = frozenset({"decimal", "number", "scalar"})
"""A hash of Tarantool 2.6 takes 1 and 1.0 for two keys when they are decimals."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a space.

    Parameters:
        name: Its name.
        type: Its type.
        is_nullable: Whether it may be nil.
    """

    name: str
    type: str
    is_nullable: bool


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an index.

    Parameters:
        field_no: The number of its field.
        type: Its type.
        path: The path within the field; empty for the field itself.
        collation: The number of the collation of strings; None for their bytes.
    """

    field_no: int
    type: str
    path: str = ""
    collation: int | None = None


@dataclass(frozen=True, slots=True)
class LaidIndex:
    """An index of a space.

    Parameters:
        id: Its number.
        kind: `tree` or `hash`.
        is_unique: Whether keys are unique.
        parts: Its parts.
    """

    id: int
    kind: str
    is_unique: bool
    parts: list[Part]


@dataclass(frozen=True, slots=True)
class Layout:
    """A space.

    Parameters:
        space_id: Its number.
        fields: Its fields.
        indexes: Its indexes, the primary first.
        exact: Whether numbers include decimals, and no doubles of many digits.
        definition: The requests that create it.
        rows: The rows of earlier requests.
    """

    space_id: int
    fields: list[Field]
    indexes: list[LaidIndex]
    exact: bool
    definition: list[Request]
    rows: list[list[Any]] = field(default_factory=list)

    def row(self, draws: Draws) -> list[Any]:
        """Draw a row, mostly a valid one."""
        row = [self._field(draws, number, each) for number, each in enumerate(self.fields)]
        if self.rows and draws.rarely(4):
            # an earlier one, except for a field
            row = [*draws.pick(self.rows)]
            number = draws.below(len(row))
            row[number] = self._field(draws, number, self.fields[number])
        self.rows.append(row)
        match draws.below(10):
            case 9:
                return row[: draws.below(len(row) + 1)]
            case 8:
                return [*row, value(draws, "any", exact=self.exact)]
        return row

    def key(self, draws: Draws, index: LaidIndex, *, part: int = 8) -> list[Any]:
        """Draw a key, mostly a valid one.

        Parameters:
            draws: The source of choices.
            index: The index.
            part: The rarity of keys with fewer or more parts.
        """
        if self.rows and draws.below(2):
            row = draws.pick(self.rows)
            key = [_looked_up(row[each.field_no], each.path) for each in index.parts]
        else:
            key = [value(draws, each.type, exact=self.exact, wrong=60, nils=20) for each in index.parts]
        odd = draws.below(40)
        if 0 < odd <= 39 // part:
            return key[: draws.below(len(key))]
        if odd == 39:
            return [*key, value(draws, "any", exact=self.exact)]
        return key

    def contents(self) -> list[Request]:
        """Build the requests that read it by each of its indexes."""
        return [
            Request(
                SELECT,
                {SPACE_ID: self.space_id, INDEX_ID: index.id, ITERATOR: 2, LIMIT: ALL, KEY: []},
                unordered=index.kind == "hash",
            )
            for index in self.indexes
        ]

    def _field(self, draws: Draws, number: int, own: Field) -> Any:
        """Draw a value for a field: one that its indexes accept, if there are any."""
        parts = [part for index in self.indexes for part in index.parts if part.field_no == number]
        field_type = own.type
        if parts and field_type in ("any", "scalar"):
            field_type = parts[0].type
        nested = [part for part in parts if part.path]
        if nested and not draws.rarely(12):
            return self._nested(draws, nested)
        nils = 4 if own.is_nullable else 80
        return value(draws, field_type, exact=self.exact, wrong=80, nils=nils)

    def _nested(self, draws: Draws, parts: list[Part]) -> Any:
        """Draw a map or an array with values where the parts find them."""
        document: Any = [] if parts[0].path.startswith("[") else {}
        for part in parts:
            if draws.rarely(15):
                continue
            values = [value(draws, part.type, exact=self.exact, wrong=80, nils=15) for _ in range(3)]
            match part.path:
                case "[*]":
                    document = values[: draws.below(4)]
                case "[*].a":
                    document = [{"a": each} for each in values[: draws.below(4)]]
                case "[2]":
                    document = [*document[:1], *values[:2]]
                case "a":
                    document["a"] = values[0]
                case _:
                    document["b"] = [{"c": values[0]}, 5]
        return document


def _looked_up(value: Any, path: str) -> Any:
    """Return the value at a path within a field, if it exists; of many, the first."""
    for step in {"b[1].c": ("b", 0, "c"), "[2]": (1,), "[*]": (0,), "[*].a": (0, "a"), "a": ("a",)}.get(
        path, ()
    ):
        if isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def layout(draws: Draws, space_id: int) -> Layout:
    """Choose the format and indexes of a space.

    Parameters:
        draws: The source of choices.
        space_id: The space's number.
    """
    exact = draws.pick([False, True])
    fields = [Field("id", draws.pick(KEY_TYPES), False)]
    fields += [
        Field(name, draws.pick(FIELD_TYPES), draws.pick([False, True])) for name in NAMES[: draws.below(5)]
    ]
    formatted = draws.pick([len(fields), len(fields), len(fields), 0, 1])
    indexes = [_index(draws, number, fields, exact) for number in range(1 + draws.below(4))]
    _agree(indexes)
    ways = Counter((part.field_no, part.path) for index in indexes for part in index.parts)
    rows: list[dict[str, Any]] = []
    for each in fields[:formatted]:
        row: dict[str, Any] = {"name": each.name, "type": each.type}
        if each.is_nullable:
            row["is_nullable"] = True
        rows.append(row)
    flags = {"temporary": True} if draws.rarely(6) else {}
    field_count = len(fields) if draws.rarely(6) else 0
    definition = [
        insert(SPACE, [space_id, ADMIN, f"space {space_id}", "memtx", field_count, flags, rows]),
        *(
            insert(INDEX, [space_id, index.id, f"index {index.id}", index.kind, options, parts])
            for index in indexes
            for options, parts in [(_options(index), _part_rows(draws, index, fields, ways))]
        ),
    ]
    return Layout(space_id, fields, indexes, exact, [Request.of(request) for request in definition])


def _index(draws: Draws, number: int, fields: list[Field], exact: bool) -> LaidIndex:
    kind = "hash" if draws.rarely(5) else "tree"
    is_unique = number == 0 or kind == "hash" or draws.pick([True, False])
    is_first = number == 0 or kind == "hash"
    usable = [
        field_no
        for field_no, each in enumerate(fields)
        if not (each.is_nullable and is_first) and not (each.type in _PATHS and kind == "hash")
    ]
    parts = [
        _part(draws, field_no, fields[field_no].type, is_first, exact)
        for field_no in draws.sample(usable, 1 + (draws.below(3) if draws.below(2) else 0))
    ]
    if not _UNHASHED.isdisjoint(part.type for part in parts):
        kind = "tree"
    return LaidIndex(number, kind, is_unique, parts)


def _agree(indexes: list[LaidIndex]) -> None:
    """Give all parts with the same path the type of the first.

    Otherwise Tarantool 2.6 forgets the type of the first, and reads one type of value as another.
    """
    types: dict[tuple[int, str], str] = {}
    for index in indexes:
        index.parts[:] = [
            replace(part, type=types.setdefault((part.field_no, part.path), part.type)) if part.path else part
            for part in index.parts
        ]


def _part(draws: Draws, field_no: int, own: str, is_first: bool, exact: bool) -> Part:
    """A part on a field of a type; the first index, and a hash, must not have many keys of a row."""
    # on a field with numbers of every type there are decimals or doubles of many digits, not both
    unwanted = "double" if exact else "decimal"
    if own in _PATHS:
        paths = [path for path in _PATHS[own] if not (is_first and "*" in path)]
        types = [each for each in KEY_TYPES if each != unwanted]
        return Part(field_no, draws.pick(types), draws.pick(paths))
    types = [each for each in _OTHERS.get(own, (own,)) if each != unwanted]
    field_type = draws.pick(types) if types and (own == "any" or draws.rarely(4)) else own
    has_collation = field_type in ("string", "scalar") and draws.rarely(3)
    return Part(field_no, field_type, collation=draws.pick([1, 2, 3, 0, 4, 22]) if has_collation else None)


def _options(index: LaidIndex) -> dict[str, Any]:
    return {"unique": index.is_unique}


def _part_rows(
    draws: Draws, index: LaidIndex, fields: list[Field], ways: Counter[tuple[int, str]]
) -> list[Any]:
    if draws.below(3) and not any(
        fields[part.field_no].is_nullable or part.path or part.collation is not None for part in index.parts
    ):
        return [[part.field_no, part.type] for part in index.parts]
    rows = []
    for part in index.parts:
        row: dict[str, Any] = {"field": part.field_no, "type": part.type}
        if fields[part.field_no].is_nullable or (
            # Tarantool 2.6 forgets the first of two that differ in this
            part.path and index.id and ways[part.field_no, part.path] == 1 and draws.rarely(2)
        ):
            row["is_nullable"] = True
        if part.path:
            row["path"] = part.path
        if part.collation is not None:
            row["collation"] = part.collation
        rows.append(row)
    return rows
