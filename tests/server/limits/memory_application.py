"""A space that tests of the memory limit fill."""

from __future__ import annotations

from typing import Any

from iproto_server import Application, Box

SPACE = 600
"""The space's number."""

app = Application("rows")


@app.setup
def setup(box: Box) -> None:
    """Create the space, with two indexes."""
    space = box.schema.create_space("rows", id=SPACE, if_not_exists=True)
    space.create_index("primary", if_not_exists=True)
    space.create_index("text", parts=[(1, "string")], unique=False, if_not_exists=True)


@app.procedure("insert_two")
def insert_two(box: Box, first: list[Any], second: list[Any]) -> None:
    """Insert two rows."""
    box.space.rows.insert(first)
    box.space.rows.insert(second)
