"""Whatever is done to a space comes out as it was recorded.

The record has short digests of the answer, the rows and the log after each step. To change it on purpose:
`RECORD_OUTCOMES=1 pytest` of this file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from random import Random
from typing import Any, ClassVar, NamedTuple

import pytest

from iproto_server import Box, BoxError, Space, Tuple
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.memtx.read_view import ReadView
from iproto_server.box.tuple.tuple import NIL as STORE_NOTHING
from iproto_server.box.txn.interactive_transaction import InteractiveTransaction
from iproto_server.box.txn.statement import Statement
from iproto_server.box.update import Operations, parse_update
from iproto_server.codec import msgpack as codec
from iproto_server.errors import ErrorCode
from tests.native.outcomes import told

RECORD_FILE = Path(__file__).with_name("space_outcomes.json")
RECORD: dict[str, str] = json.loads(RECORD_FILE.read_text())
RECORDING = bool(os.environ.get("RECORD_OUTCOMES"))


class Color(IntEnum):
    """A number that is more than that."""

    RED = 1


class Name(str):
    """A text that is more than that."""

    __slots__ = ()


class Row(list[Any]):
    """A list that is more than that."""


class TriggerError(Exception):
    """What triggers raise."""


# -- what is done --


class Act(NamedTuple):
    """One thing that is done: the name of a method of `World`, and its arguments."""

    name: str
    arguments: tuple[Any, ...] = ()


NAMES = ["a", "b", "é", "\0", "R"]
ODD = [
    None,
    True,
    -1,
    1.0,
    1.5,
    2**63,
    2**64,
    "1",
    b"a",
    [1],
    {"a": 1},
    Color.RED,
    Name("a"),
    Decimal(1),
    object,
]
CONSTANTS = [(("=", 1, 3),), (("=", 2, "R"),), (("=", "name", None),), (("+", 1, 1),), (("=", 3, 5),)]
TRIGGERS = ["note", "raise", "change", "undoable", "roll back", "commit", "end and raise", "grow"]
DECIDERS = ["pass", "keep", "nothing", "other", "other key", "nonsense", "raise"]


class Choice:
    """Chooses what is done: mostly what is usual, and one time in ten something else."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._pick = self._random.choice

    def _is_odd(self) -> bool:
        return self._random.random() < 0.1

    def _number(self) -> Any:
        return self._pick(ODD) if self._random.random() < 0.03 else self._random.randrange(6)

    def _name(self) -> Any:
        return self._pick(ODD) if self._random.random() < 0.03 else self._pick([*NAMES, None])

    def _values(self) -> list[Any]:
        return [self._pick([self._number, self._name])() for _ in range(self._random.randrange(5))]

    def _list(self) -> list[Any]:
        if self._is_odd():
            return self._values()
        row = [self._number(), self._number(), self._name()]
        return row if self._is_odd() else [*row, self._pick([self._number(), [1, 2]])]

    def _row(self) -> Any:
        row = self._list()
        if not self._is_odd():
            return row
        return self._pick([tuple(row), Row(row), AsTuple(row), row[:2], None, "row", {1: 2}])

    def _key(self) -> Any:
        if not self._is_odd():
            return self._pick([self._number(), [self._number()]])
        values = self._values()
        return self._pick([self._name(), values, tuple(values), Row(values), AsTuple(values), None])

    def _key_of_index(self) -> tuple[Any, Any]:
        """The number of an index and a key that may be one of it."""
        if self._is_odd():
            return self._pick([0, 2, 4, 7, -1, 2**70, True, "0"]), self._key()
        number = self._random.randrange(4)
        keys = (
            [self._number()],
            [self._number()],
            [self._name()],
            [self._name(), self._number(), self._number()],
        )
        key = keys[number]
        return number, key[: self._random.randrange(4)] if number == 3 and self._is_odd() else key

    def _list_key_of_index(self) -> tuple[Any, Any]:
        number, key = self._key_of_index()
        return number, key if isinstance(key, list) else [key]

    def _operations(self) -> Any:
        if self._is_odd():
            return self._pick(
                [None, 5, [["="]], [("=", 1, object)], [], [("+", 1, 1), ("=", 2, "b")], [("!", 3, 1)]]
            )
        if self._random.random() < 0.3:
            return self._pick(CONSTANTS)
        if self._random.random() < 0.4:
            return [self._operation() for _ in range(self._pick([1, 1, 2, 3]))]
        pairs = [self._assignment() for _ in range(self._pick([1, 1, 2, 3]))]
        return self._pick(
            [[("=", *pair) for pair in pairs], tuple(("=", *pair) for pair in pairs), [["=", *pairs[0]]]]
        )

    def _operation(self) -> Any:
        """Any operation, of which one in three can be carried out."""
        field = self._pick(
            [1, 1, 2, 3, "rank", "name", -1, -2, self._pick([0, 4, 5, "more", "name[1]", 2**31])]
        )
        argument = self._pick([1, 1, 2, -1, 1.5, Decimal("0.5"), self._pick(ODD)])
        opcode = self._pick("+-+-&|^!#=:")
        if opcode == ":":
            return opcode, field, self._random.randrange(3), self._random.randrange(-1, 3), self._name()
        return self._pick([tuple, list, Row])((opcode, field, argument))

    def _assignment(self) -> tuple[Any, Any]:
        field = self._pick([1, 1, 2, 3, "rank", "name", self._pick([0, 4, -1, True, "no name", "id"])])
        return field, self._name() if field in (2, "name") else self._number()

    def change(self) -> Act:
        """A change of a row."""
        name = self._pick(
            ["insert", "replace", "put", "update", "delete", "update_by", "delete_by", "upsert"]
        )
        if name in ("insert", "replace", "put"):
            return Act(name, (self._row(),))
        key = self._key_of_index() if name.endswith("by") else (self._key(),)
        if name == "upsert":
            return Act(name, (self._row(), self._operations()))
        return Act(name, key if name.startswith("delete") else (*key, self._operations()))

    def look(self) -> Act:
        """A search for rows."""
        name = self._pick(
            ["get", "get_by", "first_by", "first_by", "min_by", "max_by", "max_by", "select_by"]
        )
        if name == "get":
            return Act(name, (self._key(),))
        number, key = self._key_of_index()
        if name != "select_by":
            return Act(name, (number, key))
        iterator = self._pick([None, 0, 2, 5, 6, "GE", "req"])
        return Act(name, (number, key, iterator, self._pick([0, 0, 0, 1, -1]), self._pick([1, 1, 0, 2, 9])))

    def request(self) -> Act:
        """What requests do, which come with packed rows."""
        name = self._pick(
            [
                "core_store",
                "core_update",
                "core_upsert",
                "core_delete",
                "core_find",
                "core_first",
                "core_select",
            ]
        )
        if name == "core_store":
            row = self._pick([b"", b"\x93", b"\xc1", b"\x05"]) if self._is_odd() else self._list()
            return Act(name, (self._pick([True, False]), row))
        if name == "core_upsert":
            return Act(name, (self._list(), self._operations()))
        number, key = self._list_key_of_index()
        if name == "core_update":
            return Act(name, (number, key, self._operations()))
        if name != "core_select":
            return Act(name, (number, key))
        iterator = self._random.randrange(-1, 13) if self._is_odd() else self._pick([0, 0, 1, 2, 5])
        return Act(name, (number, iterator, self._pick([0, 0, 1]), self._pick([1, 1, 0, 3]), key))

    def turn(self) -> Act:
        """A change of what is around the space, or its end."""
        number = self._random.randrange(1, 4)
        return self._pick(
            [
                *(Act("set_trigger", (each,)) for each in TRIGGERS),
                *(Act("decide", (self._pick(DECIDERS),)), Act("decide_no_more"), Act("decide_no_more")),
                *(Act("clear_triggers"), Act("clear_triggers"), Act("clear_triggers")),
                *(Act("begin"), Act("commit"), Act("roll_back"), Act("begin"), Act("commit")),
                *(
                    Act("set_read_only", (True,)),
                    Act("set_read_only", (False,)),
                    Act("set_read_only", (False,)),
                ),
                *(Act("watch"), Act("watch_no_more"), Act("watch_no_more")),
                *(
                    Act("become", (user,))
                    for user in ("admin", "admin", "admin", "guest", "reader", "writer")
                ),
                *(Act("stream_begin"), Act("stream_resume"), Act("stream_resume"), Act("stream_suspend")),
                *(Act("stream_commit"), Act("stream_commit"), Act("truncate"), Act("rename")),
                *(Act("add_index", (number,)), Act("add_index", (number,)), Act("drop_index", (number,))),
                *(
                    Act("set_format", (True,)),
                    Act("set_format", (False,)),
                    Act("add_multikey"),
                    Act("number_rows"),
                ),
                *(Act("drop_index", (0,)), Act("drop")),
            ]
        )

    def acts(self, count: int) -> list[Act]:
        """Some acts; at the beginning the space is filled."""
        fill = [Act("insert", ([number, number, self._pick(NAMES), number],)) for number in range(3)]
        kinds = [*[self.change] * 5, *[self.look] * 2, *[self.request] * 2, self.turn]
        return fill + [self._pick(kinds)() for _ in range(count)]


class AsTuple(list[Any]):
    """Values that are given as a Tuple."""


def given_as(value: Any) -> Any:
    return Tuple(codec.pack(list(value))) if isinstance(value, AsTuple) else value


# -- to whom --

FORMAT: list[Any] = [
    ("id", "unsigned"),
    ("rank", "unsigned"),
    {"name": "name", "type": "string", "is_nullable": True},
]
INDEXES: list[dict[str, Any]] = [
    {"name": "primary", "parts": ["id"]},
    {"name": "rank", "parts": ["rank"]},
    {"name": "name", "parts": ["name"], "unique": False},
    {"name": "both", "parts": ["name", "rank", "id"]},
]


class World:
    """A box with a space, and somebody who writes down whatever happens.

    Parameters:
        type: of the primary index.
    """

    def __init__(self, type: str) -> None:
        self.box = Box()
        self.notes: list[str] = []
        self.space: Space = self.box.schema.create_space("things", format=FORMAT)
        self.space.create_index(**INDEXES[0], type=type, id=0)
        for number in (1, 2, 3):
            self.space.create_index(**INDEXES[number], id=number)
        self.core: MemtxSpace = self.space.core()
        self.stream: InteractiveTransaction | None = None
        self.view: ReadView | None = None
        for name, rights in (("reader", "read"), ("writer", "read,write")):
            self.box.schema.user.create(name)
            self.box.schema.user.grant(name, rights, "space", "things")
        self.session = self.box.session.open("binary", None, user="admin")
        self.box.session.current = self.session
        self._depth = 0

    # -- by its face --

    def insert(self, row: Any) -> object:
        return self.space.insert(row)

    def replace(self, row: Any) -> object:
        return self.space.replace(row)

    def put(self, row: Any) -> object:
        return self.space.put(row)

    def update(self, key: Any, operations: Any) -> object:
        return self.space.update(key, operations)

    def delete(self, key: Any) -> object:
        return self.space.delete(key)

    def upsert(self, row: Any, operations: Any) -> None:
        self.space.upsert(row, operations)

    def get(self, key: Any) -> object:
        return self.space.get(key)

    def _index(self, number: Any) -> Any:
        index = type(self.space.primary)(self.space, number)
        assert self.space.primary.id == 0
        return index

    def update_by(self, number: Any, key: Any, operations: Any) -> object:
        return self._index(number).update(key, operations)

    def delete_by(self, number: Any, key: Any) -> object:
        return self._index(number).delete(key)

    def get_by(self, number: Any, key: Any) -> object:
        return self._index(number).get(key)

    def first_by(self, number: Any, key: Any) -> object:
        return self._index(number).first(key)

    def min_by(self, number: Any, key: Any) -> object:
        return self._index(number).min(key)

    def max_by(self, number: Any, key: Any) -> object:
        return self._index(number).max(key)

    def select_by(self, number: Any, key: Any, iterator: Any, offset: int, limit: int) -> object:
        return self._index(number).select(key, iterator=iterator, offset=offset, limit=limit)

    # -- as requests do --

    def core_store(self, is_insert: bool, values: Any) -> object:
        row = Tuple(values if isinstance(values, bytes) else codec.pack(values), self.core.format)
        return self.core.insert(row) if is_insert else self.core.replace(row)

    def core_update(self, number: Any, key: Any, operations: Any) -> object:
        return self.core.update(number, key, self._parsed(operations))

    def core_upsert(self, row: list[Any], operations: Any) -> None:
        self.core.upsert(self.core.row(row), self._parsed(operations))

    def _parsed(self, operations: Any) -> Operations:
        return parse_update(codec.pack(operations), self.core.format.names, deferred=True)

    def core_delete(self, number: Any, key: Any) -> object:
        return self.core.delete(number, key)

    def core_find(self, number: Any, key: Any) -> object:
        return self.core.find(number, key)

    def core_first(self, number: Any, key: Any) -> object:
        return self.core.first(number, key)

    def core_select(self, number: Any, iterator: int, offset: int, limit: int, key: Any) -> object:
        if offset < 0 or limit < 0:
            return None  # requests have none
        return self.core.select(number, iterator, offset, limit, key)

    # -- transactions --

    def begin(self) -> None:
        self.box.begin()

    def commit(self) -> None:
        if self.stream is None or self.box.transactions.interactive is None:
            self.box.commit()

    def roll_back(self) -> None:
        if self.stream is None or self.box.transactions.interactive is None:
            self.box.transactions.rollback()

    def stream_begin(self) -> None:
        if self.stream is None and not self.box.is_in_txn():
            self.stream = self.box.interactive.begin()

    def stream_resume(self) -> None:
        if self.stream is not None and not self.box.is_in_txn():
            self.box.interactive.resume(self.stream)

    def stream_suspend(self) -> None:
        if self.box.transactions.interactive is not None:
            self.stream = self.box.interactive.suspend()

    def stream_commit(self) -> None:
        self.stream_suspend()
        stream, self.stream = self.stream, None
        if stream is not None and not self.box.is_in_txn():
            self.box.interactive.commit(stream)

    # -- triggers --

    def set_trigger(self, kind: str) -> None:
        def trigger(old: Tuple | None, new: Tuple | None) -> None:
            self.notes.append(f"{kind}: {told(old)} to {told(new)}")
            if self._depth > 2:
                return
            self._depth += 1
            try:
                self._react(kind, old, new)
            finally:
                self._depth -= 1

        undo = None if kind != "undoable" else lambda *rows: self.notes.append(f"undone: {told(rows)}")
        self.core.on_replace.set(trigger, None, undo)

    def _react(self, kind: str, old: Tuple | None, new: Tuple | None) -> None:
        row = new or old
        assert row is not None
        if kind == "raise" and row[1] == 3:
            raise TriggerError(kind)
        if kind == "change":
            self.space.replace([row[0] + 5, row[1] + 5, None])
        if kind == "grow":
            self.set_trigger("note")
        if row[1] == 2 and kind == "roll back":
            self.box.transactions.rollback()
        if row[1] == 2 and kind in ("commit", "end and raise") and self.box.transactions.interactive is None:
            self.box.commit()
            if kind == "end and raise":
                raise TriggerError(kind)

    def clear_triggers(self) -> None:
        self.core.on_replace.functions = ()

    def decide(self, kind: str) -> None:
        def trigger(old: Tuple | None, new: Tuple | None) -> object:
            self.notes.append(f"{kind}? {told(old)} to {told(new)}")
            if kind == "raise":
                raise TriggerError(kind)
            row = new or old
            assert row is not None
            decided = {
                "keep": old,
                "nothing": STORE_NOTHING,
                "other": [row[0], 4, "R"],
                "other key": [9, 9, None],
                "nonsense": 5,
            }
            return decided.get(kind)

        self.core.before_replace.set(trigger)

    def decide_no_more(self) -> None:
        self.core.before_replace.functions = ()

    # -- what is around it --

    def set_read_only(self, is_read_only: bool) -> None:
        self.box.set_read_only(is_read_only)

    def watch(self) -> None:
        if self.view is None and not self.box.is_in_txn() and self.stream is None:
            self.view = ReadView.of_kept(self.box.catalog.spaces.values())

    def watch_no_more(self) -> None:
        if self.view is not None:
            self.notes += [
                told(found) for space_id, _, found in self.view.slices() if space_id == self.core.id
            ]
            self.view.close()
            self.view = None

    def become(self, user: str) -> None:
        self.session.become(self.box.access.by_name(user))

    def drop_index(self, number: int) -> None:
        self._index(number).drop()

    def add_index(self, number: int) -> None:
        self.space.create_index(**INDEXES[number], id=number)

    def add_multikey(self) -> None:
        self.space.create_index(
            "multi", id=5, parts=[{"field": 4, "type": "unsigned", "path": "[*]"}], unique=False
        )

    def set_format(self, is_strict: bool) -> None:
        self.space.format([*FORMAT, ("more", "unsigned")] if is_strict else [])

    def number_rows(self) -> None:
        self.space.index[0].alter(sequence=True)

    def truncate(self) -> None:
        self.space.truncate()

    def rename(self) -> None:
        self.space.rename("items")

    def drop(self) -> None:
        self.space.drop()

    # -- what came of it --

    def state(self) -> list[str]:
        """All that there is to see."""
        core, transactions = self.core, self.box.transactions
        indexes = [(number, list(index.items())) for number, index in core.indexes.items()]
        statements = None if transactions.statements is None else [*map(self._told, transactions.statements)]
        notes, self.notes = self.notes, []
        return [
            *(f"index {number}: {told(sorted(entries))}" for number, entries in indexes),
            f"{core.bsize} bytes, {statements}, {transactions.journal.position()} rows",
            *notes,
        ]

    def _told(self, statement: Statement) -> str:
        assert type(statement) is Statement
        assert statement.space is not self.core or statement.primary in (
            *self.core.indexes.values(),
            statement.primary,
        )
        return (
            f"{statement.space.name} {told(statement[1:4])} {statement.primary.name} {statement.undo is None}"
        )


def told_error(error: BaseException | None) -> str:
    """An error and what it came of."""
    if error is None:
        return ""
    code = getattr(error, "code", None)
    text = re.sub("0x[0-9a-f]+", "an address", str(error))
    return f"{type(error).__name__}: {code} {text} <- {told_error(error.__context__)}"


def carry_out(type: str, given_acts: Sequence[Act]) -> list[str]:
    """What there was to see after each act."""
    world = World(type)
    seen = []
    for name, arguments in given_acts:
        try:
            answer = getattr(world, name)(*map(given_as, arguments))
            seen.append(f"{name}{arguments}: {told(answer)}")
        except Exception as error:  # noqa: BLE001  # whatever it is, both must raise it
            seen.append(f"{name}{arguments}: {told_error(error)}")
        seen += world.state()
    world.watch_no_more()
    return seen


def digest(text: str) -> str:
    """A short form of a text, to be stored."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def recorded(given_acts: Sequence[Act], type: str = "tree") -> list[str]:
    """Do something, and compare what there is to see with what was recorded."""
    seen = carry_out(type, given_acts)
    digests = [digest(each) for each in seen]
    key = digest(type + repr(list(given_acts)))
    if RECORDING:
        RECORD[key] = "".join(digests)
        RECORD_FILE.write_text(json.dumps(RECORD, indent=0, sort_keys=True) + "\n")
    expected = re.findall("." * 8, RECORD[key])
    first = next(
        (place for place, pair in enumerate(zip(digests, expected, strict=True)) if len({*pair}) > 1), None
    )
    assert first is None, f"{seen[first]} was not what came of it, after\n" + "\n".join(
        seen[max(first - 8, 0) : first]
    )
    return seen


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_done(seed: int) -> None:
    recorded(Choice(seed).acts(60), "hash" if seed % 10 == 9 else "tree")


FILL = [
    Act("insert", ([number, rank, name],)) for number, rank, name in ((0, 0, "a"), (1, 1, "b"), (2, 4, "c"))
]


@pytest.mark.parametrize("kind", TRIGGERS)
@pytest.mark.parametrize("is_begun", [False, True])
def test_triggers(kind: str, is_begun: bool) -> None:
    begin = [Act("begin")] if is_begun else []
    seen = recorded(
        [
            *FILL,
            *begin,
            Act("set_trigger", ("undoable",)),
            Act("set_trigger", (kind,)),
            Act("set_trigger", ("undoable",)),
            Act("update", (1, CONSTANTS[0])),
            Act("replace", ([4, 2, None],)),
            Act("insert", ([5, 3, "R"],)),
            Act("delete", (0,)),
            Act("roll_back"),
        ]
    )
    assert sum("undoable: " in each for each in seen) >= 4


@pytest.mark.parametrize(
    "given_act",
    [Act("insert", ([1, 5, "e"],)), Act("insert", ([5, 4, "e"],)), Act("update", (1, (("=", 1, 4),)))],
)
def test_a_row_that_another_one_refuses(given_act: Act) -> None:
    seen = recorded([*FILL, given_act, Act("begin"), given_act])
    assert sum("Duplicate key" in each for each in seen) == 2


class FaultyJournal:
    """Refuses rows."""

    vclock: ClassVar[dict[int, int]] = {}

    def append(self, statements: object) -> bool:
        raise BoxError(ErrorCode.WAL_IO)

    def position(self) -> int:
        return 0


def test_rows_that_cannot_be_logged() -> None:
    world = World("tree")
    world.set_trigger("undoable")
    world.insert([1, 1, "a"])
    *rows, size, _ = world.state()
    assert size == "5 bytes, None, 17 rows"
    world.box.transactions.journal = FaultyJournal()
    for change in (world.space.insert, world.space.replace, world.core.replace):
        with pytest.raises(BoxError) as caught:
            change(Tuple(codec.pack([0, 2, None])))
        assert caught.value.code == ErrorCode.WAL_IO
        notes = [
            r"undoable: NoneType None to Tuple b'\x93\x00\x02\xc0'",
            r"undone: tuple[NoneType None, Tuple b'\x93\x00\x02\xc0']",
        ]
        assert world.state() == [*rows, "5 bytes, None, 0 rows", *notes]


FOUND, CHANGED, ADDED = [1, 1, "a"], [1, 8, "a"], [7, 7, None]


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (lambda space: space.insert(), TypeError),
        (lambda space: space.insert([7, 7, None], 5), TypeError),
        (lambda space: space.insert(values=[7, 7, None]), ADDED),
        (lambda space: space.put(values=[7, 7, None]), ADDED),
        (lambda space: space.put(rows=[7, 7, None]), TypeError),
        (lambda space: space.update(1), TypeError),
        (lambda space: space.update(key=1, operations=[("=", 1, 8)]), CHANGED),
        (lambda space: space.update(1, operations=[("=", 1, 8)]), CHANGED),
        (lambda space: space.update(1, [("=", 1, 8)], key=1), TypeError),
        (lambda space: space.get(key=1), FOUND),
        (lambda space: space.get(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), TypeError),
        (lambda space: space.select(1), [FOUND]),
        (lambda space: space.select(key=1, limit=1), [FOUND]),
        (lambda space: space.select(key=1, offset=1), []),
        (lambda space: space.select(1, limit=2**70), [FOUND]),
        (lambda space: space.select(1, 5), TypeError),
        (lambda space: space.select(1, limit=None), TypeError),
        (lambda space: space.select(1, offset=1.0), TypeError),
        (lambda space: space.select(1, limit=-(2**70)), BoxError),
        (lambda space: space.select(1, iterator=-1), BoxError),
        (lambda space: space.select(1, iterator=2**70), BoxError),
        (lambda space: space.select(1, iterator=1.0), BoxError),
        (lambda space: space.select([], after=[0, 0, ""]), [FOUND]),
        (lambda space: space.select([], after=[1, 0, ""], limit=1), []),
        (lambda space: space.index["rank"].first(), FOUND),
        (lambda space: space.index["rank"].first(key=1), FOUND),
        (lambda space: space.index["rank"].min(), FOUND),
        (lambda space: space.index["rank"].max(), FOUND),
        (lambda space: space.index["rank"].max(key=1), FOUND),
        (lambda space: space.index["rank"].max(1, 2), TypeError),
        (lambda space: space.index["rank"].select(iterator="GE", key=0), [FOUND]),
        (lambda space: space.index["rank"].delete(number=1), TypeError),
        (lambda space: space.core().select(0, 0, 0, 1, [1], None), [codec.pack(FOUND)]),
        (
            lambda space: space.core().select(0, 0, 0, limit=1, key=[1], after=b""),
            [codec.pack(FOUND)],
        ),
        (lambda space: space.core().insert([7, 7, None]), TypeError),
        (lambda space: space.core().replace(None), TypeError),
        (lambda space: space.core().find(0, (1,)), TypeError),
        (lambda space: space.core().update(0, [1], None), AttributeError),
    ],
)
def test_calls_in_every_way(call: Callable[[Any], object], answer: Any) -> None:
    world = World("tree")
    world.insert(FOUND)
    if isinstance(answer, type):
        with pytest.raises(answer):
            call(world.space)
    else:
        assert call(world.space) == answer
    rows = {1: CHANGED if answer is CHANGED else FOUND, **({7: ADDED} if answer is ADDED else {})}
    assert world.space.select() == list(rows.values())


@pytest.mark.parametrize(
    "fields", [[1, 1, "a", 2], [1, 1, "é", {"a": [1]}, b"b", 1.5, True, None, -5, Decimal(1), "x"]]
)
@pytest.mark.parametrize("number", [0, 2, 3, 4, 7, 9, 10, -1, 11, 2**70, True, "id", "name", "no name"])
def test_fields_of_rows_that_were_found(fields: list[Any], number: Any) -> None:
    world = World("tree")
    world.insert(fields)
    stored = Tuple(codec.pack(fields), world.core.format)
    for found in (world.space.get(1), world.space.index["rank"].first(1)):
        assert found is not None
        for each in (number, 3, number, 0):
            seen: list[str] = []
            expected: list[str] = []
            for row, answers in ((found, seen), (stored, expected)):
                try:
                    answers.append(told(row[each]))
                except LookupError as error:
                    answers.append(told_error(error))
            assert seen == expected
        assert found[3] is found[3]
        assert found == stored


def test_methods_have_their_names() -> None:
    assert Space.put is Space.replace
    assert Space.insert.__name__ == "insert"
    assert MemtxSpace.insert.__qualname__ == "Space.insert"


def test_what_inherits_from_a_space_has_its_own_way() -> None:
    class Counting(MemtxSpace):
        """A space that counts what is done in it."""

        __slots__ = ("changes",)
        changes: int

        def insert(self, row: Tuple) -> Tuple:
            self.changes += 1
            return super().insert(row)

    world = World("tree")
    space = Counting(600, "counting", 1, world.box.transactions)
    space._is_custom = True
    space.changes = 0
    space.set_indexes({0: world.core.index(0).empty_copy()})
    world.box.catalog.spaces[600] = space
    row = space.row([1, "a"])
    assert space.insert(row) == row
    assert Space(world.box, world.box.schema, space).insert([2, "b"]) == space.row([2, "b"])
    assert space.changes == 2
