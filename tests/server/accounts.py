"""An application that gives the tests' server a user beside the guest."""

from __future__ import annotations

from iproto_server import Application, Box

app = Application("accounts")


@app.setup
def setup(box: Box) -> None:
    box.schema.user.create("alice", password="secret", if_not_exists=True)
    box.schema.user.grant("alice", "execute", "universe", if_not_exists=True)
