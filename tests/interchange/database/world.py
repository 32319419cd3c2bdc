"""A database with every kind of object, and changes of it, as requests of a client."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from tests.interchange.database.packing import Packed, extension, float32, long_form, pack
from tests.interchange.database.statements import (
    Statement,
    atomically,
    call,
    create_index,
    create_space,
    delete,
    in_vain,
    insert,
    replace,
    update,
    upsert,
)

INFINITY: Final = float("inf")

VALUES: Final[dict[str, list[Any]]] = {
    "unsigned": [0, 1, 127, 128, 255, 2**16, 2**32 - 1, 2**32, 2**63, 2**64 - 1],
    "integer": [-(2**63), -(2**31) - 1, -129, -128, -33, -32, -1, 0, 1, 2**63, 2**64 - 1],
    "number": [
        -INFINITY,
        -1.7e308,
        -(2**63),
        -1.5,
        0,
        5e-324,
        float32(0.1),
        0.1,
        1,
        2**64 - 1,
        1e300,
        INFINITY,
    ],
    "double": [-INFINITY, -1.7e308, -1.0, 0.0, 5e-324, 0.1, 2.0**53, 1.7e308, INFINITY],
    "string": ["", "\0", "a", "ab", "B", "x" * 31, "x" * 32, "x" * 256, "x" * 70_000, "żółw", "日本", "🐢"],
    "varbinary": [b"", b"\0", b"\xff\xfe", b"a" * 255, b"a" * 256, b"\xff" * 70_000],
    "boolean": [False, True],
    "decimal": [Decimal(text) for text in ("-9" + "9" * 37, "-1.5", "0", "1.50", "1e-38", "9" * 38)],
    "uuid": [UUID(int=number) for number in (0, 1, 2**64, 2**127 + 5, 2**128 - 1)],
    "scalar": [False, True, -(2**63), 0, 0.5, 2**64 - 1, "", "text", b"", b"binary"],
}
"""Values of each type that an index may have, including extreme ones, in no order."""

NOT_INDEXED: Final[dict[str, list[Any]]] = {
    "any": [None, 1, "text", [], {}],
    "array": [[], [1, [2, [3, []]]], [None] * 70_000],
    "map": [{}, {"a": {"b": {"c": [1, {2: 3}]}}}, {-1: "negative", 2**64 - 1: b"great", "text": None}],
}
"""Values of the types that no index has."""

EVERY_FIELD: Final = 600
PLAIN: Final = 601
ORDERS: Final = 602
LOCAL: Final = 603
TEMPORARY: Final = 604
TEXTS: Final = 613
DOCUMENTS: Final = 614
TAGGED: Final = 615
_OF_TYPES: Final = 620


def build() -> Iterator[Statement]:
    """Create a database with every type of field, every kind of index and every kind of definition."""
    yield from _spaces_of_every_type()
    yield from _every_field()
    yield from _plain()
    yield from _orders()
    yield from _texts()
    yield from _documents()
    yield from _tagged()
    yield from _kinds_of_spaces()
    yield from _definitions()
    yield from _principals()


def change() -> Iterator[Statement]:
    """Change the database of `build` in every way, and leave it usable for further changes."""
    yield insert(PLAIN, 1000, "inserted")
    yield replace(PLAIN, 1000, "replaced", {"by": ["whom"]})
    yield update(PLAIN, [1000], ["=", 1, "updated"], ["!", 2, "between"], ["#", 3, 1])
    yield upsert(PLAIN, [1001, 5], ["+", 1, 2])
    yield upsert(PLAIN, [1001, 5], ["+", 1, 2])
    yield delete(PLAIN, 2)
    yield update(ORDERS, ["paid", 11], ["=", "note", "by a secondary index"], ["+", "number", 100], index=1)
    yield update(ORDERS, ["new"], ["=", "note", "unique, with nil elsewhere"], index=2)
    yield delete(ORDERS, "late", 13, index=1)
    yield replace(TEXTS, "ŻÓŁW", 2, "in the place of the one in small letters")
    yield update(DOCUMENTS, ["4", 4], ["=", "document.of[1].name", "fourth"], ["#", "document.kind", 1])
    yield update(DOCUMENTS, ["first"], ["=", "document.seen", True], index=1)
    yield delete(DOCUMENTS, "third", index=1)
    yield update(TAGGED, [1], ["!", "tags[1]", "new"], ["#", "tags[3]", 1])
    yield update(TAGGED, [2], ["=", "words[1].text", "Other"])
    yield delete(TAGGED, "third", 3, index=1)
    yield atomically(
        ["orders", "insert", [500, "paid", 14, None, "first"]],
        ["local", "replace", [2, "local among others"]],
        ["orders", "delete", [500]],
        ["temporary", "replace", [1, "never logged"]],
        ["orders", "insert", [501, "paid", 15, None, "last"]],
        ["local", "insert", [500, "the last one, local"]],
    )
    yield atomically(["local", "insert", [501, "alone"]], ["local", "delete", [500]])
    yield atomically(["temporary", "replace", [2, "never logged"]])
    yield in_vain(["orders", "insert", [999, "in vain", 1, None, ""]], ["local", "delete", [2]])
    yield create_space(699, "made_later", format=[{"name": "id", "type": "unsigned"}])
    yield create_index("made_later", "pk", (1, "unsigned"))
    yield insert(699, 2**64 - 1)
    yield call("box.schema.space.create", "numbered_by_the_server")
    yield create_index("altered", "made_later", (3, "integer"), (1, "unsigned"), unique=False)
    yield call("box.space.filled_anew:truncate")
    yield call("box.space.renamed:rename", "renamed_again")
    yield call("box.schema.user.create", "later", {"password": "secret"})
    yield call("box.schema.user.grant", "later", "read", "space", "made_later")


def change_back() -> Iterator[Statement]:
    """Undo the definitions of `change`, so that it can be called again."""
    yield call("box.schema.user.drop", "later")
    yield call("box.space.altered.index.made_later:drop")
    yield call("box.space.made_later:drop")
    yield call("box.space.numbered_by_the_server:drop")
    yield call("box.space.renamed_again:rename", "renamed")
    yield replace(TEXTS, "żółw", 2, "in small letters again")
    yield from _two_documents()
    yield from _three_tagged()
    for key in (1000, 1001):
        yield delete(PLAIN, key)
    yield replace(PLAIN, 2, "again")
    yield atomically(["orders", "delete", [501]], ["local", "delete", [501]])
    yield replace(ORDERS, 3, "late", 13, None, "again")
    yield replace(ORDERS, 1, "paid", 11, None, "again")


def _spaces_of_every_type() -> Iterator[Statement]:
    for number, (kind, values) in enumerate(VALUES.items()):
        tree, hashed = f"tree_{kind}", f"hash_{kind}"
        tree_id, hash_id = _OF_TYPES + 2 * number, _OF_TYPES + 2 * number + 1
        yield create_space(tree_id, tree)
        yield create_index(tree, "pk", (1, kind))
        yield create_index(tree, "unique", (2, kind), (1, kind))
        yield create_index(tree, "nullable", (3, kind, {"is_nullable": True}), unique=False)
        for value in reversed(values):
            yield insert(tree_id, value, values[0], value)
        yield replace(tree_id, values[1], values[1], None)
        yield replace(tree_id, values[0], values[0])
        yield create_space(hash_id, hashed)
        yield create_index(hashed, "pk", (1, kind), type="hash")
        yield create_index(hashed, "second", (2, kind), (1, kind), type="hash")
        for value in values:
            yield insert(hash_id, value, value, "hashed")
        yield delete(hash_id, values[-1])


def _every_field() -> Iterator[Statement]:
    types = {**VALUES, **NOT_INDEXED}
    fields = [{"name": f"an_{kind}", "type": kind, "is_nullable": True} for kind in types]
    yield create_space(EVERY_FIELD, "every_field", format=[{"name": "id", "type": "unsigned"}, *fields])
    yield create_index("every_field", "pk", (1, "unsigned"))
    for number in range(max(map(len, types.values()))):
        yield insert(EVERY_FIELD, number, *(values[number % len(values)] for values in types.values()))
    yield insert(EVERY_FIELD, 100, *(None for _ in types))
    yield insert(EVERY_FIELD, 101)


def _plain() -> Iterator[Statement]:
    yield create_space(PLAIN, "plain")
    yield create_index("plain", "pk", (1, "unsigned"))
    noise = b"".join(pack(number * 2654435761 % 2**32) for number in range(200_000))
    rows: list[list[Any]] = [
        [],
        ["deleted later"],
        ["1 MB of what can be compressed", "text " * 200_000],
        ["1 MB of what cannot", noise],
        list(range(5000)),
        ["", b"", [], {}, None, False],
        [
            Packed(b"\xd9\x01a"),
            Packed(b"\xdd\x00\x00\x00\x01\x01"),
            Packed(b"\xdf\x00\x00\x00\x00"),
            long_form(7),
        ],
        [extension(77, b"unknown"), extension(55, b"\0" * 300), Packed(b"\xd3" + b"\xff" * 8)],
        [Packed(b"\x91" * 100 + b"\x90")],
    ]
    for number, row in enumerate(rows, 1):
        yield insert(PLAIN, number, *row)


def _orders() -> Iterator[Statement]:
    fields = [
        ("id", "unsigned"),
        ("state", "string"),
        ("number", "integer"),
        ("code", "scalar"),
        ("note", "any"),
    ]
    nullable = {"code", "note"}
    yield create_space(
        ORDERS,
        "orders",
        format=[{"name": name, "type": kind, "is_nullable": name in nullable} for name, kind in fields],
    )
    yield create_index("orders", "pk", (1, "unsigned"))
    yield create_index("orders", "state", (2, "string"), (3, "integer"))
    yield create_index("orders", "code", (4, "scalar", {"is_nullable": True}))
    yield create_index("orders", "binary", (2, "string", {"collation": "binary"}), unique=False)
    yield create_index("orders", "by_hash", (3, "integer"), (2, "string"), (1, "unsigned"), type="hash")
    for key, state, number, code in ((1, "paid", 11, None), (2, "new", 12, "new"), (3, "late", 13, None)):
        yield insert(ORDERS, key, state, number, code, {"of": key})
    yield insert(ORDERS, 4, "", -1, 0)


def _texts() -> Iterator[Statement]:
    """Indexes with collations."""
    yield create_space(TEXTS, "texts", format=[{"name": "t", "type": "string", "collation": "unicode_ci"}])
    yield create_index("texts", "pk", (1, "string", {"collation": "unicode_ci"}))
    yield create_index("texts", "exact", (1, "string", {"collation": "unicode"}))
    yield create_index("texts", "bytes", (1, "string"), unique=False)
    yield create_index("texts", "german", (1, "string", {"collation": "unicode_de__phonebook_s3"}))
    yield create_index("texts", "hashed", (1, "string", {"collation": "unicode_ci"}), type="hash")
    scalar = {"collation": "unicode_ci", "is_nullable": True}
    yield create_index("texts", "scalar", (3, "scalar", scalar), (2, "unsigned"))
    texts = ["", "a", "B", "c", "żółw", "zebra", "Öl", "Ofen", "Oz", "日本", "🐢", "x-ray", "xray", "11", "9"]
    for number, text in enumerate(texts):
        third = [text.upper(), number, None][number % 3]
        yield insert(TEXTS, text, number % 4, third, number)


def _documents() -> Iterator[Statement]:
    """Indexes of what is inside fields."""
    yield create_space(
        DOCUMENTS,
        "documents",
        format=[{"name": "id", "type": "unsigned"}, {"name": "document", "type": "map"}],
    )
    yield create_index(
        "documents", "pk", (2, "string", {"path": "id"}), (2, "unsigned", {"path": "numbers[1]"})
    )
    yield create_index("documents", "name", (2, "string", {"path": "of[1].name"}))
    kind = {"path": "kind", "is_nullable": True, "collation": "unicode_ci"}
    yield create_index("documents", "kind", (2, "string", kind), unique=False)
    yield from _two_documents()
    yield insert(DOCUMENTS, 1, {"id": "1", "numbers": [1], "of": [{"name": "first"}], "kind": "A"})
    yield insert(DOCUMENTS, 2, {"of": [{"name": "second"}, 5], "id": "2", "numbers": [2, 3], "kind": "a"})


def _two_documents() -> Iterator[Statement]:
    yield replace(DOCUMENTS, 3, {"kind": None, "id": "3", "numbers": [3], "of": [{"name": "third"}]})
    yield replace(DOCUMENTS, 4, {"kind": "b", "id": "4", "numbers": [4], "of": [{"name": "4th", "x": 1}]})


def _tagged() -> Iterator[Statement]:
    """Multikey indexes."""
    fields = [
        {"name": "id", "type": "unsigned"},
        {"name": "tags", "type": "array"},
        {"name": "words", "type": "array"},
    ]
    yield create_space(TAGGED, "tagged", format=fields)
    yield create_index("tagged", "pk", (1, "unsigned"))
    yield create_index("tagged", "tag", (2, "string", {"path": "[*]"}), (1, "unsigned"))
    word = {"path": "[*].text", "collation": "unicode_ci"}
    yield create_index("tagged", "word", (3, "string", word))
    count = {"path": "[*].count", "is_nullable": True}
    yield create_index("tagged", "count", (3, "unsigned", count), unique=False)
    yield from _three_tagged()
    yield insert(TAGGED, 4, [], [])


def _three_tagged() -> Iterator[Statement]:
    yield replace(TAGGED, 1, ["first", "all", "first"], [{"text": "One", "count": 5}, {"text": "one"}])
    yield replace(TAGGED, 2, ["second", "all"], [{"text": "Two"}, {"text": "zwei", "count": None}])
    yield replace(TAGGED, 3, ["third", "all"], [{"text": "Three", "count": 5}, {"text": "3", "count": 6}])


def _kinds_of_spaces() -> Iterator[Statement]:
    yield create_space(LOCAL, "local", is_local=True)
    yield create_index("local", "pk", (1, "unsigned"))
    yield create_index("local", "text", (2, "string"), unique=False)
    yield create_space(TEMPORARY, "temporary", temporary=True)
    yield create_index("temporary", "pk", (1, "unsigned"))
    yield insert(LOCAL, 1, "local")
    yield insert(TEMPORARY, 1, "temporary")
    yield create_space(605, "of_three_fields", field_count=3)
    yield create_index("of_three_fields", "pk", (3, "string"))
    yield insert(605, 1, 2, "three")
    yield create_space(606, "without_indexes")
    yield create_space(607, "space with a żółw's name", format=[{"name": "поле", "type": "unsigned"}])


def _definitions() -> Iterator[Statement]:
    yield create_space(608, "altered")
    yield create_index("altered", "pk", (1, "unsigned"))
    yield create_index("altered", "dropped", (2, "string"))
    yield create_index("altered", "second", (2, "string"), unique=False)
    for number in range(1, 20):
        yield insert(608, number, f"text {number}", -number)
    yield call("box.space.altered.index.dropped:drop")
    # The primary index by two fields, the second one by a third, as index:alter does it.
    yield update(288, [608, 0], ["=", 5, [{"field": 1, "type": "string"}, {"field": 0, "type": "unsigned"}]])
    yield update(288, [608, 2], ["=", 5, [[2, "integer"]]], ["=", 2, "third"], ["=", 4, {"unique": True}])
    yield call(
        "box.space.altered:format", [{"name": "id", "type": "scalar"}, {"name": "text", "type": "any"}]
    )
    yield insert(608, 1000, "after all", 0, "more")
    yield create_space(609, "dropped")
    yield create_index("dropped", "pk", (1, "unsigned"))
    yield insert(609, 1)
    yield call("box.space.dropped:drop")
    yield create_space(609, "in_its_place")
    yield create_index("in_its_place", "pk", (1, "string"), type="hash")
    yield insert(609, "one")
    for space, name in ((610, "emptied"), (611, "filled_anew")):
        yield create_space(space, name)
        yield create_index(name, "pk", (1, "unsigned"))
        yield create_index(name, "second", (2, "unsigned"), unique=False)
        yield insert(space, 1, 1)
        yield call(f"box.space.{name}:truncate")
    yield insert(611, 1, 2)
    yield create_space(612, "before")
    yield create_index("before", "pk_before", (1, "unsigned"))
    yield insert(612, 1)
    yield call("box.space.before:rename", "renamed")
    yield call("box.space.renamed.index.pk_before:rename", "pk")


def _principals() -> Iterator[Statement]:
    yield call("box.schema.user.create", "alice", {"password": "secret"})
    yield call("box.schema.user.create", "without_password")
    yield call("box.schema.user.create", "dropped")
    yield call("box.schema.role.create", "accountant")
    yield call("box.schema.func.create", "listed", {"setuid": True})
    yield call("box.schema.func.create", "dropped")
    yield call("box.schema.user.grant", "alice", "read,write", "space", "orders")
    yield call("box.schema.user.grant", "alice", "execute", "function", "listed")
    yield call("box.schema.user.grant", "alice", "execute", "role", "accountant")
    yield call("interchange.grant_for_all", "accountant")
    yield call("box.schema.user.grant", "without_password", "read", "space", "plain")
    yield call("box.schema.user.revoke", "without_password", "read", "space", "plain")
    yield call("box.schema.user.passwd", "without_password", "has one now")
    yield call("box.schema.user.drop", "dropped")
    yield call("box.schema.func.drop", "dropped")
