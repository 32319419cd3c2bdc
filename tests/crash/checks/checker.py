"""Compares the contents of a restarted server with the expected state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgpack

from tests.crash import schema
from tests.crash.books.deals import Deals
from tests.crash.books.numbering import Numbering
from tests.crash.books.tasks import READY, TAKEN, WAITING, Tasks
from tests.crash.books.world import World, shown
from tests.crash.checks.audit import Audit
from tests.crash.checks.finding import Finding, Kind
from tests.crash.loads.writer import first_places
from tests.crash.schema import ACCOUNTS, BALLAST, ITEMS, TOTALS, TRANSFERS, Row


class Books:
    """The expected state of one database.

    Parameters:
        ballast_rows: The number of rows of ballast that it gets.

    Attributes:
        worlds: The expected rows of each client.
        tasks: The expected tasks of the queue.
        deals: The expected deals of streams and their shares.
        numbering: The expected rows numbered by a sequence.
        ballast: The number of acknowledged rows of ballast.
        ballast_rows: The number of rows of ballast that it gets.
    """

    def __init__(self, ballast_rows: int = 0) -> None:
        self.worlds = {client: World(client, first_places(client)) for client in range(schema.CLIENTS)}
        self.tasks = Tasks()
        self.deals = Deals()
        self.numbering = Numbering()
        self.ballast = 0
        self.ballast_rows = ballast_rows

    def check(self, audit: Audit) -> list[Finding]:
        """Compare with the contents of a server to which nobody has written since it started.

        These contents are the expected state from then on.
        """
        findings: list[Finding] = []
        places = audit.places()
        for client, world in self.worlds.items():
            findings += world.compare(places.pop(client))
        for client, strange in places.items():
            findings.append(
                Finding(Kind.STRANGE, f"rows of client {client}, whom nobody knows: {shown(strange)}")
            )
        findings += self.tasks.compare(
            audit.rows("queue"), audit.time, audit.rows("queue_dlq"), audit.rows("_queue_attempts")
        )
        findings += self.deals.compare(audit.rows("deals"), audit.rows("shares"))
        findings += self.numbering.compare(audit.rows("numbered"))
        findings += check_indexes(audit)
        findings += check_totals(audit)
        findings += check_definitions(audit)
        findings += check_stats(audit)
        findings += self._check_ballast(audit)
        return findings

    def _check_ballast(self, audit: Audit) -> Iterator[Finding]:
        rows = audit.rows(BALLAST)
        if len(rows) < self.ballast:
            yield Finding(Kind.LOST, f"{len(rows)} rows of ballast instead of {self.ballast}")
        if len(rows) % schema.BALLAST_AT_A_TIME:
            yield Finding(
                Kind.HALF, f"{len(rows)} rows of ballast, of which {schema.BALLAST_AT_A_TIME} came at a time"
            )
        for key, row in enumerate(rows):
            if row != schema.ballast(key):
                yield Finding(Kind.STRANGE, f"ballast {key} is {shown(row)}")
                break
        self.ballast = len(rows)


def check_indexes(audit: Audit) -> Iterator[Finding]:
    """Check that every index of every space, including system spaces, has the rows of the primary one."""
    for name, space in audit.spaces.items():
        if not space.indexes:
            continue
        if space.length != len(space.rows):
            yield Finding(
                Kind.INDEX, f"{name} says that it has {space.length} rows, but shows {len(space.rows)}"
            )
        for index in space.indexes:
            if index.size != len(index.rows):
                yield Finding(
                    Kind.INDEX,
                    f"{name}.{index.name} says that it has {index.size} rows, but shows {len(index.rows)}",
                )
            order = schema.ORDERS.get((name, index.name))
            shown = space.rows if order is None else order(space.rows)
            if order is not None and index.rows != shown:
                yield Finding(Kind.INDEX, f"{name}.{index.name} is not in its order")
            expected, found = packed(shown), packed(index.rows)
            for row, times in (expected - found).items():
                yield Finding(Kind.INDEX, f"{name}.{index.name} misses {times} × {unpacked(row)}")
            for row, times in (found - expected).items():
                yield Finding(Kind.INDEX, f"{name}.{index.name} has {times} × {unpacked(row)} too many")


def packed(rows: list[Row]) -> Counter[bytes]:
    """Return rows as an unordered collection."""
    return Counter(map(msgpack.Packer().pack, rows))


def unpacked(row: bytes) -> str:
    """Format a row for a finding."""
    return shown(msgpack.unpackb(row, strict_map_key=False))


def check_totals(audit: Audit) -> Iterator[Finding]:
    """Check that counters maintained by transactions match the rows they count."""
    totals = {row[0]: row[1:] for row in audit.rows(TOTALS)}
    items = audit.rows(ITEMS.name)
    expected = [len(items), sum(row[1] for row in items)]
    if totals.get("items") != expected:
        yield Finding(Kind.COUNTER, f"the items' count and sum are {totals.get('items')}, not {expected}")
    # Each client numbers its transfers, and only the last one is stored.
    numbers = sum(row[1] for row in audit.rows(TRANSFERS.name))
    transfers = totals.get("transfers", [0, 0])
    if transfers[0] != numbers:
        yield Finding(Kind.COUNTER, f"{transfers[0]} transfers are counted, but {numbers} were made")
    balance = sum(row[2] for row in audit.rows(ACCOUNTS.name))
    expected_balance = schema.CLIENTS * schema.ACCOUNTS_PER_CLIENT * schema.BALANCE
    if balance != expected_balance:
        yield Finding(Kind.HALF, f"all accounts together have {balance}, not {expected_balance}")


def check_definitions(audit: Audit) -> Iterator[Finding]:
    """Check that every index belongs to a space, and every space has a primary index."""
    spaces = {row[0]: row[2] for row in audit.rows("_space")}
    stored = {row[2] for row in audit.rows("_space") if row[3] == "memtx"}
    indexes = {(row[0], row[1]) for row in audit.rows("_index")}
    for space_id, index_id in sorted(indexes):
        if space_id not in spaces:
            yield Finding(Kind.HALF, f"there is an index {index_id} of a space {space_id} that is not there")
    for space_id, name in spaces.items():
        if name in stored and (space_id, 0) not in indexes:
            yield Finding(Kind.HALF, f"the space {name} has no primary index")


def check_stats(audit: Audit) -> Iterator[Finding]:
    """Check that the queue's counters match its tasks."""
    if audit.stats is None:
        return
    statuses = Counter(row[1] for row in audit.rows("queue"))
    expected = {
        "total": statuses.total(),
        "ready": statuses[READY],
        "taken": statuses[TAKEN],
        "waiting": statuses[WAITING],
    }
    if dict(audit.stats) != expected:
        yield Finding(Kind.COUNTER, f"queue.stats says {dict(audit.stats)}, but it should say {expected}")
