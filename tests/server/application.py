"""An application that tests of the server call."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

from iproto_server import Application, Box, BoxError, Waiter, WaitQueue

app = Application("test")
gates: dict[str, asyncio.Event] = {}
lines: dict[str, WaitQueue] = {}
running = {"now": 0, "most": 0}


@app.setup
def setup(box: Box) -> None:
    log = box.schema.create_space("log", format=[("id", "unsigned"), ("text", "string")], if_not_exists=True)
    log.create_index("primary", parts=["id"], if_not_exists=True)
    lines["line"] = WaitQueue(box)


@app.procedure("echo")
def echo(box: Box, *arguments: object) -> list[object]:
    return list(arguments)


@app.procedures_under("named.")
def find(name: str) -> Callable[..., object] | None:
    """There is a procedure for everything under `named.` but `named.nobody`."""
    return None if name == "named.nobody" else lambda box, *arguments: [name, *arguments]


@app.procedure("nothing")
def nothing(box: Box) -> None:
    return None


@app.procedure("nil")
def nil(box: Box) -> tuple[None]:
    return (None,)


@app.procedure("several")
def several(box: Box) -> tuple[object, ...]:
    return 1, "two", [3]


@app.procedure("collect_after")
def collect_after(box: Box) -> list[int]:
    return list(gc.get_threshold())


@app.procedure("row")
def row(box: Box) -> object:
    return box.space.log.replace([1, "row"])


@app.procedure("rows")
def rows(box: Box) -> object:
    box.space.log.replace([1, "row"])
    box.space.log.replace([2, "row"])
    return box.space.log.select()


@app.procedure("refuse")
def refuse(box: Box) -> None:
    box.space.log.replace([99, "must not stay"])
    raise BoxError.procedure("no")


@app.procedure("break")
def break_(box: Box) -> None:
    box.space.log.replace([99, "must not stay"])
    raise ZeroDivisionError("by zero")


@app.procedure("unpackable")
def unpackable(box: Box) -> object:
    return object()


@app.procedure("add")
def add(box: Box, left: int, right: int = 1) -> int:
    return left + right


@app.procedure("who")
def who(box: Box) -> tuple[object, ...]:
    return box.session.id(), box.session.user(), box.session.peer(), box.session.type()


@app.procedure("park")
def park(box: Box, timeout: float) -> Waiter:
    return lines["line"].park(timeout, lambda: "woken")


@app.procedure("wake")
def wake(box: Box) -> None:
    box.on_commit(lines["line"].wake)


@app.procedure("gate.wait")
async def wait(box: Box, name: str) -> str:
    running["now"] += 1
    running["most"] = max(running["most"], running["now"])
    try:
        await gates.setdefault(name, asyncio.Event()).wait()
    finally:
        running["now"] -= 1
    return name


@app.procedure("gate.open")
def open_(box: Box, name: str) -> None:
    gates.setdefault(name, asyncio.Event()).set()


@app.procedure("gate.most")
def most(box: Box) -> tuple[int, int]:
    return running["now"], running["most"]


@app.procedure("stretches")
async def stretches(box: Box) -> None:
    """The first stretch is kept, the second is undone."""
    box.space.log.replace([1, "kept"])
    await asyncio.sleep(0)
    box.space.log.replace([2, "must not stay"])
    raise BoxError.procedure("too late")


@app.procedure("timeout")
async def timeout(box: Box) -> str:
    try:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
    except TimeoutError:
        return "timed out"
    return "unreachable"


@app.procedure("big")
def big(box: Box, size: int) -> str:
    return "x" * size


@app.procedure("slow")
async def slow(box: Box, seconds: float) -> str:
    running["now"] += 1
    await asyncio.sleep(seconds)
    return "done"
