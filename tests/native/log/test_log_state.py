"""LogState: committed statements become rows of the log."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import Box
from iproto_server.box.txn.statement import Statement
from iproto_server.codec import msgpack as codec
from iproto_server.native._native import LogRows, LogState
from iproto_server.storage.vclock import VClock
from iproto_server.storage.wal import WalMode, WriteAheadLog
from iproto_server.storage.xlog import Row, RowFlag, RowType, decode_rows
from tests.plugins.profiles import examples
from tests.storage.files import INSTANCE, TIMESTAMP

LSN, LOCAL_LSN, MEMBER = 40, 7, 3


class Log(LogState):
    """A log that records the calls of its methods."""

    def __init__(self, *, is_stored: bool = True) -> None:
        super().__init__(LogRows(MEMBER, LSN, local_lsn=LOCAL_LSN), self.now, is_stored)
        self.calls: list[str] = []
        self.effect: Any = (True, False)

    def now(self) -> float:
        self.calls.append("now")
        return TIMESTAMP

    def refuse(self) -> NoReturn:
        self.calls.append("refuse")
        raise ZeroDivisionError

    def write(self) -> None:
        self.calls.append("write")
        self.waiting = self.waiting.following()

    def effect_of(self, statement: Statement, /) -> tuple[bool, bool]:
        self.calls.append("effect_of")
        return self.effect  # type: ignore[no-any-return]

    def position(self) -> int:
        return self.waiting.lsn

    @property
    def vclock(self) -> VClock:
        return VClock({MEMBER: self.waiting.lsn})

    def rows(self) -> list[Row]:
        """The rows that wait."""
        return decode_rows(b"".join(self.waiting.blocks()))


def a_box(log: Log | WriteAheadLog | None = None) -> Box:
    """A box with spaces that are logged in different ways; then the log is its journal."""
    box = Box()
    for name in ("plain", "pairs", "local", "scratch"):
        space = box.schema.create_space(name, is_local=name == "local", temporary=name == "scratch")
        space.create_index(
            "primary", parts=[(2, "string"), (0, "unsigned")] if name == "pairs" else [(0, "unsigned")]
        )
    if log is not None:
        box.transactions.journal = log
    return box


def append(log: Log | WriteAheadLog, box: Box, change: Callable[[], object]) -> bool:
    """Have a transaction logged; tell whether it waits to be written."""
    before = box.transactions.journal
    box.transactions.journal = log
    box.transactions.take_unwritten()
    try:
        box.run(box.session.background, change)
    finally:
        box.transactions.journal = before
    return bool(box.transactions.take_unwritten())


class Logged(NamedTuple):
    """A change as the log shall have it."""

    kind: RowType
    space: str
    value: bytes


changes = st.tuples(
    st.sampled_from(["plain", "pairs", "local", "scratch"]), st.integers(0, 3), st.sampled_from("RRRTD")
)


def make(box: Box, rows: dict[tuple[str, int], str], space: str, number: int, text: str) -> Logged | None:
    """Make a change; return what shall be logged of it."""
    old = rows.get((space, number))
    if text == "D":
        if old is None:
            return None
        rows.pop((space, number))
        key: list[Any] = ["key", number] if space == "pairs" else [number]
        box.space[space].delete(key)
        return Logged(RowType.DELETE, space, codec.pack(key))
    rows[space, number] = text
    row = [number, text, "key"]
    box.space[space].replace(row)
    return Logged(RowType.INSERT if old is None else RowType.REPLACE, space, codec.pack(row))


@examples(60)
@given(st.lists(st.lists(changes, max_size=20), max_size=6))
@pytest.mark.parametrize("is_stored", [True, False])
def test_random_transactions(is_stored: bool, transactions: list[list[tuple[str, int, str]]]) -> None:
    log = Log(is_stored=is_stored)
    box = a_box(log)
    rows: dict[tuple[str, int], str] = {}
    expected: list[Row] = []
    lsn, local_lsn = LSN, LOCAL_LSN
    for transaction in transactions:
        made: list[Logged | None] = []

        def run(transaction: Any = transaction, made: Any = made) -> None:
            made += [make(box, rows, *change) for change in transaction]

        box.run(box.session.background, run)
        logged = [change for change in made if change is not None and change.space != "scratch"]
        are_local = [change.space == "local" for change in logged]
        tsn = local_lsn + 1 if all(are_local) else lsn + 1
        for place, change in enumerate(logged):
            is_local = change.space == "local"
            lsn, local_lsn = lsn + (not is_local), local_lsn + is_local
            is_deletion = change.kind is RowType.DELETE
            expected.append(
                Row(
                    change.kind,
                    local_lsn if is_local else lsn,
                    box.space[change.space].id,
                    None if is_deletion else change.value,
                    change.value if is_deletion else None,
                    timestamp=TIMESTAMP,
                    replica_id=0 if is_local else MEMBER,
                    group_id=int(is_local),
                    tsn=tsn,
                    flags=RowFlag.COMMIT if place == len(logged) - 1 else 0,
                )
            )
    assert (log.waiting.lsn, log.waiting.local_lsn) == (lsn, local_lsn)
    assert [row._replace(body=b"") for row in log.rows()] == (expected if is_stored else [])
    assert log.calls == (["now"] if is_stored and expected else [])


def test_a_transaction_of_many_rows_is_one() -> None:
    log = Log()
    box = a_box()
    plain = box.space.plain
    assert append(log, box, lambda: [plain.insert([number, "x" * number]) for number in range(1000)])
    rows = log.rows()
    assert [row.tuple_raw for row in rows] == [codec.pack([number, "x" * number]) for number in range(1000)]
    assert {row.tsn for row in rows} == {LSN + 1}
    assert [row.is_last for row in rows] == [False] * 999 + [True]
    assert len(log.waiting.blocks()) == 1


def test_without_rows_there_is_nothing_to_write() -> None:
    log = Log()
    box = a_box()
    assert not append(log, box, lambda: None)
    assert not append(log, box, lambda: box.space.scratch.insert([1]))
    assert not log.waiting
    assert log.calls == []


# -- keys --


@pytest.mark.parametrize(
    "value",
    [0, 127, 200, 60_000, 2**31, 2**63, -1, -100, -30_000, -(2**31), -(2**62), 1.5, "", "text", "x" * 40],
)
def test_a_key_is_cut_out_of_its_row_whatever_it_is(value: object) -> None:
    log = Log()
    box = a_box()
    space = box.schema.create_space("any")
    space.create_index("primary", parts=[(0, "scalar")])
    space.insert([value, "rest"])
    append(log, box, lambda: space.delete(value))
    assert [row.key_raw for row in log.rows()] == [codec.pack([value])]


MANY = [f"f{number}" for number in range(20)]


@pytest.mark.parametrize(
    ("row", "parts", "key"),
    [
        ([1, 2, "three"], [(2, "string"), (0, "unsigned")], ["three", 1]),
        ([1, "a", 3, 4], [(1, "string"), (2, "unsigned"), (3, "unsigned")], ["a", 3, 4]),
        ([[[1], {"a": [2]}], "x" * 300, 5], [(2, "unsigned"), (1, "string")], [5, "x" * 300]),
        (MANY, [(number, "string") for number in range(15)], MANY[:15]),
        (MANY, [(19 - number, "string") for number in range(16)], MANY[:3:-1]),
        (["x"] * 70_000, [(30_000, "string")], ["x"]),
        ([1, {"name": "n", "id": 2}], [(1, "string", None, "name"), (0, "unsigned")], ["n", 1]),
        ([1, {"ids": [7, 8]}], [(1, "unsigned", None, "ids[2]")], [8]),
    ],
)
def test_a_key_has_the_parts_of_the_index_in_order(
    row: list[Any], parts: list[tuple[Any, ...]], key: list[Any]
) -> None:
    log = Log()
    box = a_box()
    space = box.schema.create_space("any")
    definitions = [
        {"field": part[0], "type": part[1]} | ({"path": part[3]} if len(part) > 3 else {}) for part in parts
    ]
    space.create_index("primary", parts=definitions)
    space.insert(row)
    append(log, box, lambda: space.delete(key))
    assert [row.key_raw for row in log.rows()] == [codec.pack(key)]


# -- system rows with effects --


def test_only_rows_with_an_effect_are_asked_about() -> None:
    log = Log()
    box = a_box()
    box.space.plain.insert([1, "R", "key"])
    for log.effect in [(True, False), (False, False), (False, True)]:
        append(log, box, box.space.plain.truncate)
    assert log.calls == ["effect_of", "now", "effect_of", "effect_of"]
    assert [(row.type, row.group_id) for row in log.rows()] == [
        (RowType.INSERT, 0),
        (RowType.REPLACE, 0),
        (RowType.REPLACE, 1),
    ]


@pytest.mark.parametrize("effect", [None, True, (True,), (1, 2, 3)])
def test_an_effect_is_two_facts(effect: object) -> None:
    log = Log()
    box = a_box()
    log.effect = effect
    with pytest.raises(TypeError):
        append(log, box, lambda: box.schema.create_space("another"))
    assert not log.waiting


@pytest.mark.parametrize(
    ("name", "kinds", "group"),
    [("plain", [RowType.REPLACE], 0), ("local", [RowType.REPLACE], 1), ("scratch", [RowType.REPLACE], 1)],
)
def test_truncating_is_local_where_the_space_is(
    name: str, kinds: list[RowType], group: int, tmp_path: Any
) -> None:
    log = WriteAheadLog(tmp_path, WalMode.WRITE, INSTANCE, 1, VClock())
    a_box(log).space[name].truncate()
    rows = decode_rows(b"".join(log.waiting.blocks()))
    assert [row.type for row in rows] == kinds
    assert {row.group_id for row in rows} == {group}


# -- the state --


def test_a_closed_log_passes_each_transaction_to_refuse() -> None:
    log = Log()
    box = a_box(log)
    log.is_closed = True
    for name in ("plain", "scratch"):
        with pytest.raises(ZeroDivisionError):
            box.space[name].insert([1, "R", "key"])
        assert box.space[name].len() == 0
    assert log.calls == ["refuse"] * 2
    log.is_closed = False
    box.space.plain.insert([1, "R", "key"])
    assert len(log.rows()) == 1


def test_rows_are_written_at_the_commit_if_that_is_asked_for() -> None:
    log = Log()
    box = a_box(log)
    log.writes_at_commit = True
    box.space.scratch.insert([1, "R", "key"])
    assert log.calls == []
    for number in (1, 2):
        box.space.plain.insert([number, "R", "key"])
    assert log.calls == ["now", "write"] * 2
    assert not box.transactions.unwritten
    assert log.waiting.lsn == LSN + 2


def test_a_write_that_fails_at_the_commit_undoes_the_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    box = a_box(log)
    log.writes_at_commit = True
    monkeypatch.setattr(Log, "write", Log.refuse)
    with pytest.raises(ZeroDivisionError):
        box.space.plain.insert([1, "R", "key"])
    assert box.space.plain.len() == 0


@pytest.mark.parametrize("clock", [lambda: 1 // 0, lambda: "now", None])
def test_without_a_time_nothing_is_appended(clock: Any) -> None:
    log = Log()
    box = a_box(log)
    log.clock = clock
    with pytest.raises((ZeroDivisionError, TypeError)):
        box.space.plain.insert([1, "R", "key"])
    del log.clock
    with pytest.raises(AttributeError):
        box.run(box.session.background, lambda: [box.space.plain.insert([n, "R", "key"]) for n in (1, 2)])
    assert (len(log.waiting), log.waiting.lsn, box.space.plain.len()) == (0, LSN, 0)


@pytest.mark.parametrize("wrong", [None, [], (), [None], "transaction"])
def test_what_is_no_transaction_is_refused(wrong: Any) -> None:
    log = Log()
    with pytest.raises(TypeError, match=r"append\(\) takes a Transaction"):
        log.append(wrong)
    assert (len(log.waiting), log.waiting.lsn) == (0, LSN)


def test_only_log_rows_wait() -> None:
    log: Any = Log()
    wrong: Any
    for wrong in (None, b"", [], log):
        with pytest.raises(TypeError):
            log.waiting = wrong
        with pytest.raises(TypeError):
            LogState(wrong, float, True)
    with pytest.raises(TypeError):
        del log.waiting
    for arguments in ((), (log.waiting,), (log.waiting, float), (log.waiting, float, True, 1)):
        with pytest.raises(TypeError):
            LogState(*arguments)
    with pytest.raises(TypeError):
        LogState(log.waiting, float, is_stored=True)  # type: ignore[call-arg]


def test_a_log_whose_clock_knows_it_is_collected() -> None:
    log = Log()
    gone = weakref.ref(log)
    del log
    gc.collect()
    assert gone() is None
