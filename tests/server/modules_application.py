"""An application that tells which modules the server has imported."""

from __future__ import annotations

import sys

from iproto_server import Application, Box, Waiter

app = Application("modules")


@app.setup
def setup(box: Box) -> None:
    fields = [("id", "unsigned"), ("text", "string")]
    rows = box.schema.create_space("rows", format=fields, if_not_exists=True)
    rows.create_index("primary", parts=["id"], if_not_exists=True)
    rows.create_index("text", parts=["text"], if_not_exists=True)


@app.procedure("modules")
def modules(box: Box) -> list[str]:
    return sorted(sys.modules)


@app.procedure("snapshot")
def snapshot(box: Box) -> Waiter:
    return box.snapshot()
