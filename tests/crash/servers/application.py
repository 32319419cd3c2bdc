"""The application of the crash test: spaces, a counter maintained by a trigger, procedures of many rows."""

from __future__ import annotations

from typing import Any

from iproto_server import Application, Box, BoxError, Tuple
from queue_lua_compat.tutorial import queue
from tests.crash import schema
from tests.crash.schema import ACCOUNTS, BALLAST, ITEMS, LABELS, NAMES, TOTALS, TRANSFERS, WORDS

app = Application("crash")


@app.setup
def create_spaces(box: Box) -> None:
    items = box.schema.create_space(
        "items",
        id=ITEMS.id,
        format=[
            ("id", "unsigned"),
            ("version", "unsigned"),
            ("client", "unsigned"),
            ("group", "unsigned"),
            ("code", "string"),
            ("text", "string"),
        ],
        if_not_exists=True,
    )
    items.create_index("primary", parts=["id"], if_not_exists=True)
    items.create_index("code", parts=["code"], if_not_exists=True)
    items.create_index("group", parts=["group"], unique=False, if_not_exists=True)
    names = box.schema.create_space("names", id=NAMES.id, if_not_exists=True)
    names.create_index("primary", type="hash", parts=[(0, "string")], if_not_exists=True)
    weight = {"field": 3, "type": "number", "is_nullable": True}
    names.create_index("weight", parts=[weight], unique=False, if_not_exists=True)
    accounts = box.schema.create_space("accounts", id=ACCOUNTS.id, if_not_exists=True)
    accounts.create_index("primary", parts=[(0, "unsigned")], if_not_exists=True)
    accounts.create_index("client", parts=[(1, "unsigned")], unique=False, if_not_exists=True)
    transfers = box.schema.create_space("transfers", id=TRANSFERS.id, if_not_exists=True)
    transfers.create_index("primary", parts=[(0, "unsigned")], if_not_exists=True)
    words = box.schema.create_space("words", id=WORDS.id, if_not_exists=True)
    words.create_index("primary", parts=[(0, "unsigned")], if_not_exists=True)
    words.create_index(
        "word", parts=[{"field": 3, "type": "string", "collation": "unicode_ci"}], if_not_exists=True
    )
    labels = box.schema.create_space("labels", id=LABELS.id, if_not_exists=True)
    labels.create_index("primary", parts=[(0, "unsigned")], if_not_exists=True)
    tags = {"field": 3, "type": "string", "path": "tags[*]"}
    labels.create_index("tags", parts=[tags], unique=False, if_not_exists=True)
    numbered = box.schema.create_space("numbered", id=schema.NUMBERED_ID, if_not_exists=True)
    numbered.create_index("primary", parts=[(0, "unsigned")], sequence=True, if_not_exists=True)
    shares = box.schema.create_space("shares", id=schema.SHARES_ID, if_not_exists=True)
    shares.create_index("primary", parts=[(0, "unsigned")], if_not_exists=True)
    shares.create_index("balance", parts=[(1, "integer")], unique=False, if_not_exists=True)
    shares.create_index("seat", parts=[(3, "unsigned")], if_not_exists=True)
    deals = box.schema.create_space("deals", id=schema.DEALS_ID, if_not_exists=True)
    deals.create_index("primary", parts=[(0, "unsigned")], if_not_exists=True)
    totals = box.schema.create_space(TOTALS, if_not_exists=True)
    totals.create_index("primary", parts=[(0, "string")], if_not_exists=True)
    ballast = box.schema.create_space(BALLAST, if_not_exists=True)
    ballast.create_index("primary", parts=[(0, "unsigned")], if_not_exists=True)
    ballast.create_index("number", parts=[(1, "unsigned")], unique=False, if_not_exists=True)
    if totals.len() == 0:
        totals.insert(["items", 0, 0])
        totals.insert(["transfers", 0, 0])
        for client in range(schema.CLIENTS):
            for number in range(schema.ACCOUNTS_PER_CLIENT):
                accounts.insert(schema.account(schema.account_key(client, number)))
        for key in range(schema.SHARES):
            shares.insert(schema.share(key))

    def count(old: Tuple | None, new: Tuple | None) -> None:
        rows = (new is not None) - (old is not None)
        versions = (0 if new is None else new[1]) - (0 if old is None else old[1])
        totals.update("items", [("+", 1, rows), ("+", 2, versions)])

    items.on_replace(count)


@app.procedure("crash.fill")
def fill(box: Box, rows: list[Any]) -> int:
    """Add ballast in one transaction."""
    for row in rows:
        box.space[BALLAST].insert(row)
    return len(rows)


@app.procedure("crash.write")
def write(box: Box, items: list[Any], names: list[Any], gone: list[int], fail: bool) -> int:
    """Replace items and names and delete items in one transaction; on request, fail at the end."""
    for row in items:
        box.space.items.replace(row)
    for row in names:
        box.space.names.replace(row)
    for key in gone:
        box.space.items.delete(key)
    if fail:
        raise BoxError.procedure("as asked")
    return len(items) + len(names) + len(gone)


@app.procedure("crash.transfer")
def transfer(box: Box, client: int, number: int, source: int, target: int, amount: int) -> int:
    """Move an amount from one account to another, record the transfer and count it."""
    box.space.accounts.update(source, [("-", 2, amount), ("=", 3, number)])
    box.space.accounts.update(target, [("+", 2, amount), ("=", 3, number)])
    box.space.transfers.replace([client, number, source, target, amount])
    box.space.totals.update("transfers", [("+", 1, 1), ("+", 2, amount)])
    return number


@app.procedure("crash.deal")
def deal(box: Box, number: int, source: int, target: int, amount: int) -> int:
    """Move an amount from one share to another, and record the deal."""
    box.space.shares.update(source, [("-", 1, amount), ("+", 2, 1)])
    box.space.shares.update(target, [("+", 1, amount), ("+", 2, 1)])
    box.space.deals.insert([number, source, target, amount])
    return number


@app.procedure("crash.create")
def create(box: Box, name: str, rows: list[Any]) -> int:
    """Create a space with its primary index and rows in one transaction."""
    space = box.schema.create_space(name)
    space.create_index("primary", parts=[(0, "unsigned")])
    for row in rows:
        space.insert(row)
    return len(rows)


@app.procedure("crash.drop")
def drop(box: Box, name: str) -> None:
    """Drop a space with its indexes and rows."""
    box.space[name].drop()


@app.procedure("crash.add_index")
def add_index(box: Box, name: str) -> None:
    """Build the second index of a space."""
    box.space[name].create_index("by_value", parts=[(2, "string")], unique=False)


@app.procedure("crash.drop_index")
def drop_index(box: Box, name: str) -> None:
    """Drop the second index of a space."""
    box.space[name].index["by_value"].drop()


@app.procedure("crash.truncate")
def truncate(box: Box, name: str) -> None:
    """Remove all rows of a space."""
    box.space[name].truncate()


@app.procedure("crash.put")
def put(box: Box, name: str, row: list[Any]) -> object:
    """Replace a row of a space."""
    return box.space[name].replace(row)


@app.procedure("crash.delete_dead")
def delete_dead(box: Box, task_id: int) -> None:
    """Delete a dead letter of the queue."""
    box.space["queue_dlq"].delete(task_id)


@app.procedure("crash.audit")
def audit(box: Box) -> dict[str, Any]:
    """Return a consistent view of everything: each stored space's length and its rows by each index, and the
    queue's counters."""
    spaces = {}
    for row in box.space["_space"].select():
        if row[3] == "memtx":
            space = box.space[row[2]]
            indexes = [[index.name, index.count(), index.select()] for index in space.index]
            spaces[space.name] = [space.len() if indexes else 0, indexes]
    return {"spaces": spaces, "stats": queue.stats(box)}
