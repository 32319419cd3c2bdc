"""Expected states and matching databases, built without a server, to test the checker."""

from __future__ import annotations

from random import Random

from tests.crash import schema
from tests.crash.books.deals import Deal, Deals
from tests.crash.books.tasks import READY, WAITING
from tests.crash.books.world import Operation
from tests.crash.checks.audit import Audit, FoundIndex, FoundSpace
from tests.crash.checks.checker import Books
from tests.crash.loads.builder import Builder
from tests.crash.loads.client import Source
from tests.crash.loads.writer import Writer
from tests.crash.schema import BALLAST, BY_VALUE, EXTRA, ITEMS, LABELS, NAMES, TOTALS, TRANSFERS, WORDS, Row

OPERATIONS = 400
"""The number of operations per client."""

LATER = 4_000_000_000.0
"""A time before the end of any delay, in seconds since 1970."""

TASKS = 20
DEALS = 20

_SECONDARY = {
    ITEMS.name: [("code", 4), ("group", 3)],
    NAMES.name: [("weight", 3)],
    "accounts": [("client", 1)],
    WORDS.name: [("word", 3)],
    LABELS.name: [("tags", 3)],
    "shares": [("balance", 1), ("seat", 3)],
    BALLAST: [("number", 1)],
    "queue": [("status", 1), ("runat", 2)],
}


class Dealings:
    """Acknowledged deals and the resulting shares.

    Attributes:
        books: The expected state.
        made: The deals that exist.
    """

    def __init__(self, books: Deals) -> None:
        self.books = books
        self.made: list[Deal] = []
        for _ in range(DEALS):
            self.make()

    def begin(self) -> Deal:
        """Begin a deal."""
        number = len(self.made)
        return self.books.begin(number % schema.SHARES, (number + 1) % schema.SHARES, 10 + number)

    def make(self) -> None:
        """Make a deal, and acknowledge it."""
        deal = self.begin()
        self.books.committed(deal)
        self.made.append(deal)

    def rows(self) -> list[Row]:
        """Return the rows of the deals."""
        return [deal.row for deal in self.made]

    def shares(self) -> list[Row]:
        """Return the resulting shares."""
        shares = [schema.share(key) for key in range(schema.SHARES)]
        for deal in self.made:
            for key, difference in ((deal.source, -deal.amount), (deal.target, deal.amount)):
                shares[key][1] += difference
                shares[key][2] += 1
        return shares


class Model:
    """A small database without faults.

    Attributes:
        books: The expected state.
        sources: The next operations of the clients.
        dealings: Deals that are acknowledged.
    """

    def __init__(self, seed: int = 1) -> None:
        self.books = Books()
        self.books.ballast = schema.BALLAST_AT_A_TIME
        self.sources: dict[int, Source] = {}
        for number, world in self.books.worlds.items():
            kind: type[Source] = Builder if number == schema.BUILDER else Writer
            self.sources[number] = kind(world, Random(f"{seed}/{number}"))
            for _ in range(OPERATIONS):
                self.acknowledge(number)
        for number in range(TASKS):
            task = self.books.tasks.putting(is_delayed=number % 2 == 1)
            self.books.tasks.put(task, {"id": 1000 + number, "runat": LATER if number % 2 else 0})
        self.dealings = Dealings(self.books.deals)
        for _ in range(DEALS):
            token = self.books.numbering.insert()
            self.books.numbering.inserted([token, token])

    def send(self, client: int, kind: str = "") -> Operation:
        """Let a client send an operation whose outcome remains unknown.

        Parameters:
            client: The client.
            kind: The kind of the operation, one that is always possible; empty for any.
        """
        while (operation := self.sources[client].next_operation()).kind != kind and kind:
            pass
        self.books.worlds[client].send(operation)
        return operation

    def acknowledge(self, client: int, kind: str = "") -> Operation:
        """Let a client send an operation that succeeds."""
        operation = self.send(client, kind)
        self._acknowledge_all(client)
        return operation

    def before(self, client: int, kind: str) -> Audit:
        """Let a client act up to and including an operation of a kind.

        Returns:
            The state of a server that lacks the last operation.
        """
        world = self.books.worlds[client]
        while (operation := self.sources[client].next_operation()).kind != kind:
            world.send(operation)
            self._acknowledge_all(client)
        audit = self.audit()
        world.send(operation)
        self._acknowledge_all(client)
        return audit

    def _acknowledge_all(self, client: int) -> None:
        world = self.books.worlds[client]
        world.acknowledge(world.sent)

    def audit(self) -> Audit:
        """Return the state of a server with exactly the acknowledged operations."""
        rows: dict[str, list[Row]] = {name: [] for name in (*schema.LOAD_SPACES, "_space", "_index")}
        rows["queue"] = [
            [
                1000 + number,
                WAITING if number % 2 else READY,
                LATER if number % 2 else 0,
                {"number": number + 1},
            ]
            for number in range(TASKS)
        ]
        rows[BALLAST] = [schema.ballast(key) for key in range(self.books.ballast)]
        indexes: dict[str, list[str]] = {}
        for world in self.books.worlds.values():
            for (name, key), value in world.certain.items():
                if name == "space":
                    indexes[key] = value
                    rows.setdefault(key, [])
                else:
                    rows.setdefault(name, []).append(value)
        rows["deals"], rows["shares"] = self.dealings.rows(), self.dealings.shares()
        rows["numbered"] = [[number, number] for number in self.books.numbering.present]
        items = rows[ITEMS.name]
        rows[TOTALS] = [
            ["items", len(items), sum(row[1] for row in items)],
            ["transfers", sum(row[1] for row in rows[TRANSFERS.name]), 0],
        ]
        for number, name in enumerate(list(rows)):
            rows["_space"].append([number, 1, name, "memtx"])
            rows["_index"].append([number, 0, "primary"])
        spaces = {}
        for name, found in rows.items():
            secondary = _SECONDARY.get(name, [])
            if name.startswith(EXTRA) and BY_VALUE in indexes[name]:
                secondary = [(BY_VALUE, 2)]
            spaces[name] = FoundSpace(
                len(found),
                [_found_index(name, index, field, found) for index, field in [("primary", 0), *secondary]],
            )
            spaces[name].rows.sort(key=lambda row: row[0])
        stats = {"total": TASKS, "ready": TASKS // 2, "taken": 0, "waiting": TASKS // 2}
        return Audit(spaces, stats, LATER - 1)


def _found_index(space: str, name: str, field: int, rows: list[Row]) -> FoundIndex:
    order = schema.ORDERS.get((space, name))
    if order is None:
        shown = sorted(rows, key=lambda row: (str(row[field]), str(row[0])))
    else:
        shown = order(rows)
    return FoundIndex(name, len(shown), shown)
