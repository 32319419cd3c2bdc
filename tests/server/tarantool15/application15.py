"""What the tests of Tarantool 1.5's protocol call and change."""

from __future__ import annotations

import asyncio
from decimal import Decimal

from iproto_server import Application, Box, BoxError, Number64, Tuple, Waiter, WaitQueue

TYPED, PLAIN, PAIRS, NULLABLE = 600, 601, 602, 603
"""Numbers of spaces."""

app = Application("tests of 1.5")
_lines: dict[str, WaitQueue] = {}
_gates: dict[str, asyncio.Event] = {}
in_flight = {"now": 0, "most": 0}
events: list[str] = []


@app.setup
def setup(box: Box) -> None:
    """Create the spaces, and tell of connections."""
    _lines["line"] = WaitQueue(box)
    fields = [
        ("id", "unsigned"),
        ("name", "string"),
        {"name": "short", "type": "unsigned", "size": 4},
        {"name": "long", "type": "unsigned", "size": 8},
    ]
    typed = box.schema.create_space("typed", id=TYPED, format=fields, if_not_exists=True)
    typed.create_index("primary", parts=["id"], if_not_exists=True)
    typed.create_index("name", parts=["name", "short"], unique=False, if_not_exists=True)
    typed.create_index("long", parts=["long"], unique=True, if_not_exists=True)
    plain = box.schema.create_space("plain", id=PLAIN, if_not_exists=True)
    plain.create_index("primary", parts=[(0, "string")], if_not_exists=True)
    pairs = box.schema.create_space("pairs", id=PAIRS, if_not_exists=True)
    pairs.create_index("primary", type="HASH", parts=[(0, "string"), (1, "unsigned")], if_not_exists=True)
    optional = [("id", "string"), {"name": "number", "type": "integer", "is_nullable": True}]
    nullable = box.schema.create_space("nullable", id=NULLABLE, format=optional, if_not_exists=True)
    nullable.create_index("primary", parts=["id"], if_not_exists=True)
    box.schema.user.create("nobody", if_not_exists=True)
    box.session.on_connect(lambda: events.append(f"connect {box.session.peer()}"))
    box.session.on_disconnect(lambda: events.append("disconnect"))


@app.procedure("echo")
def echo(box: Box, *arguments: object) -> object:
    """What it is given, as one tuple."""
    return list(arguments)


@app.procedure("types")
def types(box: Box, *arguments: object) -> list[str]:
    """What its arguments are in Python."""
    return [type(argument).__name__ for argument in arguments]


RESULTS: dict[str, object] = {
    "nothing": None,
    "nil": (None,),
    "true": True,
    "number": 7,
    "negative": -7,
    "long": 2**32,
    "number64": Number64(7),
    "fraction": 7.9,
    "text": "é",
    "bytes": b"\xff\0",
    "list": [1, "two", None, False],
    "several": (1, [2, 3], "four"),
    "lists": [[1], [2, 3]],
    "mixed lists": [[1], 2],
    "dictionary": {"a": 1, "b": 2},
    "dictionary of lists": {"a": [1], "b": [2]},
    "empty list": [],
    "nested": [1, [2]],
    "decimal": Decimal("1.5"),
}


@app.procedure("result")
def result(box: Box, which: str) -> object:
    """One of the results."""
    return RESULTS[which]


@app.procedure("rows")
def rows(box: Box) -> list[Tuple]:
    """All rows of a space."""
    return box.space.typed.select()


@app.procedure("park")
def park(box: Box, timeout: str) -> Waiter:
    """Wait to be woken, or for a time in seconds."""
    return _lines["line"].park(float(timeout), lambda: "woken")


@app.procedure("wake")
def wake(box: Box) -> None:
    """Wake one who waits."""
    _lines["line"].wake()


@app.procedure("later")
async def later(box: Box, *arguments: object) -> object:
    """What it is given, a little later."""
    await asyncio.sleep(0)
    return list(arguments)


@app.procedure("fail")
def fail(box: Box, how: str) -> None:
    """Fail."""
    if how == "python":
        raise ValueError("on purpose")
    if how == "own":
        raise BoxError.with_message(30000, "my own")
    raise BoxError.procedure("on purpose")


@app.procedure("push")
def push(box: Box) -> None:
    """Send something before the answer."""
    box.session.push("half way")


@app.procedure("big")
def big(box: Box, size: str) -> str:
    """So many bytes."""
    return "x" * int(size)


@app.procedure("gate.wait")
async def gate_wait(box: Box) -> None:
    """Wait for the gate to open."""
    in_flight["now"] += 1
    in_flight["most"] = max(in_flight["most"], in_flight["now"])
    await _gates.setdefault("gate", asyncio.Event()).wait()
    in_flight["now"] -= 1


@app.procedure("gate.open")
def gate_open(box: Box) -> None:
    """Open it."""
    _gates["gate"].set()


@app.procedure("gate.most")
def gate_most(box: Box) -> list[int]:
    """How many wait, and how many have at the most."""
    return [in_flight["now"], in_flight["most"]]


@app.procedure("store.and.wait")
def store_and_wait(box: Box, key: str) -> Waiter:
    """Store a row, then wait to be woken."""
    box.space.plain.replace([key])
    return _lines["line"].park(30, lambda: "woken")


@app.procedure("lose.rights")
def lose_rights(box: Box) -> None:
    """Be somebody who may do nothing from now on."""
    box.session.su("nobody")


@app.procedure("remember")
def remember(box: Box, value: str) -> object:
    """What this connection said the last time."""
    before = box.session.storage.value
    box.session.storage.value = value
    return (before,)


@app.procedure("sync")
def sync(box: Box) -> int:
    """The request's number."""
    return box.session.sync()


@app.procedure("events")
def told(box: Box) -> list[str]:
    """Who has come and gone."""
    return events


@app.procedure("put")
def put(box: Box, key: str, value: object) -> Tuple:
    """Store what other clients can store."""
    return box.space.plain.replace([key, value])


@app.procedure("put.kinds")
def put_kinds(box: Box) -> None:
    """Store values that only others have, in fields without a type."""
    box.space.plain.replace(["kinds", 7, -7, 2**40, 1.9, True, None, b"\xff", "text"])


@app.procedure("put.nested")
def put_nested(box: Box) -> None:
    """Store what 1.5 has no bytes for."""
    box.space.plain.replace(["nested", [1], 5])


@app.procedure("kinds")
def kinds(box: Box, key: str) -> list[str]:
    """What a row's values are in Python."""
    row = box.space.plain.get(key)
    return [repr(value) for value in row] if row else []
