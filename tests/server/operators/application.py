"""Users of different rights, who look at queues and repair them, and an application whose queues fail."""

from __future__ import annotations

from collections.abc import Iterable

from iproto_server import Application, Box, ManagedQueue
from tests.differential.login import PASSWORD

app = Application("operators")

RIGHTS = {
    "caller": "execute",
    "worker": "execute",
    "reader": "read,execute",
    "repairer": "read,write,execute",
}


@app.setup
def setup(box: Box) -> None:
    for name in (*RIGHTS, "nurse", "stranger"):
        box.schema.user.create(name, password=PASSWORD, if_not_exists=True)
    for name, rights in RIGHTS.items():
        box.schema.user.grant(name, rights, "universe", if_not_exists=True)
    if "queue" in box.space:
        box.schema.user.grant("worker", "read,write", "space", "queue", if_not_exists=True)
    for function in ("operator.tasks", "operator.release"):
        box.schema.func.create(function, if_not_exists=True)
        box.schema.user.grant("nurse", "execute", "function", function, if_not_exists=True)


broken = Application("broken")


@broken.queues
def fail(box: Box) -> Iterable[ManagedQueue]:
    raise LookupError("these queues are not here")
