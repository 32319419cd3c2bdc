"""An application for our server that creates the user of `accounts`."""

from __future__ import annotations

from iproto_server import Application, Box
from tests.clients.applications.accounts import PASSWORD, USER

app = Application("accounts")


@app.setup
def create_user(box: Box) -> None:
    box.schema.user.create(USER, password=PASSWORD, if_not_exists=True)
    box.schema.user.grant(USER, "read,write,execute,create", "universe", if_not_exists=True)
