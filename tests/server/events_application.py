"""An application that tests of watchers and of pushed messages call."""

from __future__ import annotations

import asyncio
from typing import Any

from iproto_server import Application, Box, BoxError, Waiter, WaitQueue

app = Application("events")
told: list[list[object]] = []
lines: dict[str, WaitQueue] = {}
gates: dict[str, asyncio.Event] = {}


@app.setup
def setup(box: Box) -> None:
    rows = box.schema.create_space("rows", format=[("id", "unsigned")], if_not_exists=True)
    rows.create_index("primary", parts=["id"], if_not_exists=True)
    lines["line"] = WaitQueue(box)
    told.clear()

    async def slowly(key: str, value: object) -> None:
        told.append(["begins", value])
        await asyncio.sleep(0)
        told.append([box.session.user(), value])
        box.broadcast("echo", value)

    box.watch("local", slowly)


@app.procedure("tell")
def tell(box: Box, key: str, value: object = None) -> None:
    box.broadcast(key, value)


@app.procedure("told")
def told_so_far(box: Box) -> list[list[object]]:
    return told


@app.procedure("change_and_tell")
def change_and_tell(box: Box, number: int) -> None:
    box.space.rows.replace([number])
    box.broadcast("row", number)


@app.procedure("tell_and_fail")
def tell_and_fail(box: Box, value: object) -> None:
    box.broadcast("row", value)
    raise BoxError.procedure("no")


@app.procedure("create")
def create(box: Box, name: str) -> int:
    box.schema.create_space(name)
    return box.catalog.schema_version


@app.procedure("push")
def push(box: Box, *messages: object) -> str:
    for message in messages:
        assert box.session.push(message) is True
    return "answer"


class Pushing(dict[str, object]):
    """A dict that pushes a message whenever its items are read."""

    def __init__(self, box: Box, **items: object) -> None:
        super().__init__(items)
        self.box = box

    def items(self) -> Any:
        self.box.session.push("while packing")
        return super().items()


@app.procedure("push_while_packing")
def push_while_packing(box: Box, *results: object) -> tuple[object, ...]:
    return ("first", *(Pushing(box, result=result) for result in results))


@app.procedure("push_while_failing")
def push_while_failing(box: Box) -> list[object]:
    return ["x" * 5000, Pushing(box, result=object())]


@app.procedure("push_and_fail")
def push_and_fail(box: Box, message: object) -> None:
    box.space.rows.replace([99])
    box.session.push(message)
    raise BoxError.procedure("no")


@app.procedure("push_when_open")
async def push_when_open(box: Box, gate: str) -> int:
    box.session.push("before")
    await gates.setdefault(gate, asyncio.Event()).wait()
    box.session.push("after")
    return box.session.sync()


@app.procedure("open")
def open_(box: Box, gate: str) -> None:
    gates.setdefault(gate, asyncio.Event()).set()


@app.procedure("push_when_woken")
def push_when_woken(box: Box) -> Waiter:
    def resume() -> str:
        box.session.push("woken")
        return "answer"

    return lines["line"].park(60, resume)


@app.procedure("wake")
def wake(box: Box) -> None:
    lines["line"].wake()


@app.procedure("push_unpackable")
def push_unpackable(box: Box) -> None:
    box.session.push(object())


@app.procedure("push_when_open_and_tell")
async def push_when_open_and_tell(box: Box, gate: str) -> None:
    box.session.push("before")
    await gates.setdefault(gate, asyncio.Event()).wait()
    while True:
        try:
            box.session.push("after")
        except BoxError as error:
            box.broadcast("outcome", [error.code, error.message])
            return
        await asyncio.sleep(0)  # its client is just about to be found gone
