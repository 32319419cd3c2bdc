"""An application that does what applications should not do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from iproto_server import Application, Box, BoxError, Tuple, Waiter, WaitQueue

app = Application("hostile")
lines: dict[str, WaitQueue] = {}
seen: list[object] = []
faults: set[str] = set()
gates: dict[str, asyncio.Event] = {}


def fault(name: str) -> None:
    """Raise what no code expects, while a test asks for it."""
    if name in faults:
        raise ZeroDivisionError(name)


@app.setup
def setup(box: Box) -> None:
    for remembered in (seen, faults, gates):
        remembered.clear()
    space = box.schema.create_space("log", format=[("id", "unsigned"), ("text", "string")])
    space.create_index("primary", parts=["id"])
    space.on_replace(lambda old, new: fault("on_replace"))
    box.session.on_connect(lambda: fault("on_connect"))
    # The newest runs first: the one that fails before the one that must not be kept from its work.
    box.session.on_disconnect(lambda: seen.append(("gone", box.session.id())))
    box.session.on_disconnect(lambda: fault("on_disconnect"))
    box.session.on_auth(lambda user, success: fault("on_auth"))
    box.schema.user.create("alice", password="secret")
    lines["line"] = WaitQueue(box)


@app.procedure("fault.set")
def set_fault(box: Box, name: str) -> None:
    faults.add(name)


@app.procedure("seen")
def seen_so_far(box: Box) -> list[object]:
    return [list(item) if isinstance(item, tuple) else item for item in seen]


@app.procedure("commit.fails")
def commit_fails(box: Box) -> Tuple:
    box.on_commit(lambda: 1 // 0)
    box.on_commit(lambda: seen.append("the next after the commit"))
    return box.space.log.replace([1, "kept"])


@app.procedure("rollback.fails")
def rollback_fails(box: Box) -> None:
    box.space.log.replace([2, "undone"])
    box.on_rollback(lambda: seen.append("the next after the rollback"))
    box.on_rollback(lambda: 1 // 0)
    raise BoxError.procedure("no")


@app.procedure("park")
def park(box: Box, kind: str = "") -> Waiter:
    def resume() -> object:
        if kind == "raise":
            raise ZeroDivisionError("resumed")
        if kind == "unpackable":
            return object()
        return [box.session.id(), box.session.user()]

    return lines["line"].park(60, resume)


@app.procedure("park.raise")
def park_and_raise(box: Box) -> None:
    _ = lines["line"].park(60, lambda: seen.append("nobody is there"))
    raise BoxError.procedure("parked, then raised")


@app.procedure("park.slow")
async def park_slowly(box: Box) -> Waiter:
    await asyncio.sleep(0)
    return lines["line"].park(60, lambda: "woken")


@app.procedure("line")
def line(box: Box) -> int:
    return len(lines["line"])


@app.procedure("wake")
def wake(box: Box, count: int = 1) -> int:
    return lines["line"].wake(count)


@app.procedure("as.admin")
def as_admin(box: Box) -> list[str]:
    try:
        box.run(box.session.background, lambda: None)
    except BoxError as error:
        return [error.message, box.session.user()]
    return []


@app.procedure("gate.open")
def open_(box: Box, gate: str) -> None:
    gates.setdefault(gate, asyncio.Event()).set()


async def whoami(box: Box) -> list[object]:
    await asyncio.sleep(0)
    return [box.session.id(), box.session.user(), box.is_in_txn()]


@app.procedure("beside")
async def beside(box: Box) -> list[object]:
    async with asyncio.TaskGroup() as group:
        grouped = group.create_task(whoami(box))
    gathered = await asyncio.gather(whoami(box), whoami(box))
    return [await asyncio.wait_for(whoami(box), 5), grouped.result(), *gathered]


@app.procedure("su")
async def su(box: Box, gate: str) -> str:
    with box.session.su("admin"):
        before = box.session.effective_user()
        seen.append(("su", gate))
        await gates.setdefault(gate, asyncio.Event()).wait()
        assert box.session.effective_user() == before == "admin"
    return box.session.effective_user()


@app.procedure("await.inside")
async def await_inside(box: Box) -> None:
    with box.in_transaction():
        box.space.log.replace([3, "kept, because it is a stretch of its own"])
        await asyncio.sleep(0)
        box.space.log.replace([4, "undone"])


@app.procedure("savepoint")
def savepoint(box: Box) -> None:
    def block() -> None:
        box.on_commit(lambda: seen.append("commit of what was undone"))
        box.on_rollback(lambda: seen.append("undone"))
        raise ZeroDivisionError

    try:
        box.atomic(block)
    except ZeroDivisionError:
        box.on_commit(lambda: seen.append("commit"))


@app.procedure("rollback")
def rollback(box: Box) -> None:
    box.space.log.replace([5, "undone"])
    box.on_commit(lambda: seen.append("commit of what was undone"))
    box.on_rollback(lambda: seen.append("undone"))
    box.rollback()
    box.space.log.replace([6, "kept"])


@app.metrics
def broken(box: Box) -> Mapping[str, int]:
    fault("metrics")
    return {"hostile": 1}


@app.on_stop
def stop(box: Box) -> None:
    raise ZeroDivisionError("on_stop")
