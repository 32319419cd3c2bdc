"""Users with different rights, for the dashboard."""

from __future__ import annotations

from iproto_server import Application, Box

app = Application("users")
PASSWORD = "correct horse"


@app.setup
def setup(box: Box) -> None:
    for name, rights in (("operator", "read,write"), ("viewer", "read"), ("nobody", "")):
        box.schema.user.create(name, password=PASSWORD, if_not_exists=True)
        if rights:
            box.schema.user.grant(name, rights, "universe", if_not_exists=True)


@app.procedure("set_password")
def set_password(box: Box, user: str, password: str) -> None:
    box.schema.user.passwd(user, password)


@app.procedure("drop_user")
def drop_user(box: Box, user: str) -> None:
    box.schema.user.drop(user)
