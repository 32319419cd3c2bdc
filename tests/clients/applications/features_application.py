"""An application for our server: the procedures of `features`."""

from __future__ import annotations

import asyncio

from iproto_server import Application, Box, BoxError, Tuple
from tests.clients.applications.features import TELLTALE

app = Application("features")
gates: dict[str, asyncio.Event] = {}
nodes: list[str] = []


@app.setup
def create_telltale(box: Box) -> None:
    def tell(old: Tuple | None, new: Tuple | None) -> None:
        row = new if new is not None else old
        assert row is not None
        box.session.push(["gone" if new is None else "here", row[0]])

    space = box.schema.create_space(TELLTALE, if_not_exists=True)
    space.create_index("primary", if_not_exists=True)
    space.on_replace(tell)


@app.procedure("features.echo")
def echo(box: Box, *values: object) -> tuple[object, ...]:
    return values


@app.procedure("features.push")
def push(box: Box, *messages: object) -> str:
    for message in messages:
        box.session.push(message)
    return "answer"


@app.procedure("features.push_and_fail")
def push_and_fail(box: Box, message: object) -> None:
    box.session.push(message)
    raise BoxError.with_message(1000, "failed")


@app.procedure("features.push_when_open")
async def push_when_open(box: Box, gate: str) -> str:
    box.session.push("before")
    await gates.setdefault(gate, asyncio.Event()).wait()
    box.session.push("after")
    return "answer"


@app.procedure("features.wait")
async def wait(box: Box, gate: str) -> str:
    await gates.setdefault(gate, asyncio.Event()).wait()
    return "open"


@app.procedure("features.open")
def open_gate(box: Box, gate: str) -> None:
    gates.setdefault(gate, asyncio.Event()).set()


@app.procedure("features.fail_for_a_reason")
def fail_for_a_reason(box: Box) -> None:
    cause = BoxError.with_message(1001, "the disk is full")
    raise BoxError.with_message(1000, "it cannot be stored", previous=cause)


@app.procedure("features.fail_with_own_type")
def fail_with_own_type(box: Box) -> None:
    raise BoxError.with_message(
        1000, "out of cheese", type="CustomError", fields={"custom_type": "CheeseError"}
    )


@app.procedure("features.raise_text")
def raise_text(box: Box, text: str) -> None:
    raise BoxError.procedure(text)


@app.procedure("features.return_error")
def return_error(box: Box) -> BoxError:
    cause = BoxError.with_message(1001, "the disk is full")
    return BoxError.with_message(1000, "it cannot be stored", fields={"bytes": 7}, previous=cause)


@app.procedure("features.set_nodes")
def set_nodes(box: Box, addresses: list[str]) -> None:
    nodes[:] = addresses


@app.procedure("features.nodes")
def list_nodes(box: Box) -> list[str]:
    return nodes
