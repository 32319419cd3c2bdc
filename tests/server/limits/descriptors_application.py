"""An application that uses up all descriptors, for tests of what the server does then."""

from __future__ import annotations

import os

from iproto_server import Application, Box

app = Application("descriptors")
_held: list[int] = []


@app.setup
def setup(box: Box) -> None:
    rows = box.schema.create_space(
        "rows", format=[("id", "unsigned"), ("text", "string")], if_not_exists=True
    )
    rows.create_index("primary", parts=["id"], if_not_exists=True)


@app.procedure("use_up")
def use_up(box: Box) -> int:
    """Open files until there are no descriptors left."""
    try:
        while True:
            _held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return len(_held)


@app.procedure("give_back")
def give_back(box: Box) -> None:
    """Close them."""
    while _held:
        os.close(_held.pop())


@app.procedure("write")
def write(box: Box, number: int) -> None:
    """Write a row to the log."""
    box.space.rows.insert([number, "x" * 3000])
