"""Random creation, change and drop of indexes between changes of rows, with commits and rollbacks."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from iproto_server import Box, BoxError
from iproto_server.box.memtx.consistency import faults_of
from iproto_server.box.memtx.read_view import ReadView
from tests.box.boxes import new_box, rows, state
from tests.box.txn.interactive_clients import Client, UnwrittenJournal
from tests.plugins.profiles import examples

ID = 700
_SMALL = st.integers(0, 3)
_ROW = st.tuples(_SMALL, _SMALL, _SMALL, _SMALL | st.none(), st.lists(_SMALL, max_size=3)).map(list)
_FIELDS = st.lists(st.sampled_from(range(5)), min_size=1, max_size=3, unique=True)
_DEFINITION = st.tuples(
    st.just("define"), _SMALL, _FIELDS, st.booleans(), st.sampled_from(["tree"] * 4 + ["hash"])
)

STEPS = st.lists(
    st.one_of(
        _DEFINITION,
        _DEFINITION,
        st.tuples(st.just("replace"), _ROW),
        st.tuples(st.just("replace"), _ROW),
        st.tuples(st.just("delete"), _SMALL),
        st.tuples(st.sampled_from(["drop"]), _SMALL),
        st.tuples(st.sampled_from(["truncate", "begin", "end", "roll back", "savepoint", "back"])),
        st.tuples(st.sampled_from(["written", "write fails", "open view", "read view"])),
        st.tuples(st.sampled_from(["stream", "stream commits", "stream rolls back"])),
        st.tuples(st.just("in stream"), _ROW),
    ),
    min_size=5,
    max_size=60,
)


def definition(number: int, fields: list[int], is_unique: bool, kind: str) -> list[Any]:
    """A row of `_index`; the last field of a row is an array, the one before it may be nil."""
    parts: list[dict[str, Any]] = [{"field": field, "type": "unsigned"} for field in fields]
    for part in parts:
        if part["field"] == 4:
            part["path"] = "[*]"
        if part["field"] == 3 and number:
            part["is_nullable"] = True
    return [ID, number, f"index {number}", kind, {"unique": is_unique or not number}, parts]


class World:
    """A box with a space `t`, and their recorded states."""

    def __init__(self) -> None:
        self.box: Box = new_box()[0]
        self.box.space._space.insert([ID, 1, "t", "memtx", 0, {}, []])
        self.box.space._index.insert(definition(0, [0, 1], True, "tree"))
        self.box.space._index.insert(definition(1, [2, 0], False, "tree"))
        self.space = self.box.space.t
        self.core = self.box.catalog.space(ID)
        self.box.transactions.journal = UnwrittenJournal()
        self.client: Client | None = None
        self.savepoint: Any = None
        self.view: ReadView | None = None
        self.in_view: list[bytes] = []
        self.written = self.before = self.at_savepoint = self.visible()

    @property
    def is_running(self) -> bool:
        """Whether a transaction runs."""
        return self.box.transactions.statements is not None

    def visible(self) -> Any:
        """The visible state of the space."""
        if not self.is_running and self.box.transactions.take_out is not None:
            self.box.transactions.take_out()
        own = [row for row in rows(self.box.space._index) if row[0] == ID]
        return own, state(self.space) if own else None

    def do(self, step: tuple[Any, ...]) -> None:
        """Take a step, if possible."""
        kind, *arguments = step
        box = self.box
        match kind:
            case "define":
                box.space._index.replace(definition(*arguments))
            case "drop":
                box.space._index.delete([ID, arguments[0]])
            case "replace":
                self.space.replace(arguments[0])
            case "delete":
                found = self.space.select()
                if arguments[0] < len(found):
                    primary = self.core.primary_index()
                    self.space.delete(primary.values_of(found[arguments[0]].fields))
            case "truncate":
                self.space.truncate()
            case "begin" if not self.is_running:
                self.before = self.visible()
                self.savepoint = None
                box.begin()
            case "end" if self.is_running:
                box.commit()
            case "roll back" if self.is_running:
                box.rollback()
                assert self.visible() == self.before
            case "savepoint" if self.is_running:
                self.at_savepoint = self.visible()
                self.savepoint = box.savepoint()
            case "back" if self.is_running and self.savepoint is not None:
                box.rollback_to_savepoint(self.savepoint)
                assert self.visible() == self.at_savepoint
            case "written" if not self.is_running:
                box.transactions.take_unwritten()
                self.written = self.visible()
            case "write fails" if not self.is_running:
                box.transactions.undo(box.transactions.take_unwritten())
                assert self.visible() == self.written
            case "open view" if not self.is_running and self.view is None:
                self.visible()
                self.in_view = list(self.core.rows())
                self.view = ReadView([self.core])
            case "read view" if self.view is not None:
                shown = [row for _, _, found in self.view.slices(2) for row in found]
                self.view.close()
                self.view = None
                assert sorted(shown) == sorted(self.in_view)
            case _ if not self.is_running:
                self._in_stream(kind, *arguments)

    def _in_stream(self, kind: str, *arguments: Any) -> None:
        if kind == "stream":
            self.client = Client(self.box)
        client = self.client
        if client is None or client.transaction is None:
            return
        match kind:
            case "in stream":
                client.do(self.space.replace, arguments[0])
                client.do(rows, self.space)
            case "stream commits":
                self.client = None
                client.commit()
            case "stream rolls back":
                self.client = None
                client.roll_back()


@examples(150)
@given(STEPS)
def test_indexes_are_what_the_rows_ask_for_after_each_step(steps: list[tuple[Any, ...]]) -> None:
    world = World()
    for step in steps:
        with suppress(BoxError):
            world.do(step)
        world.visible()
        assert list(faults_of(world.core)) == [], step
