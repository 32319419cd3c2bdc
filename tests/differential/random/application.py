"""An application that gives our server what `LUA` gives to a real Tarantool."""

from typing import Final

from iproto_server import Application, Box
from tests.real_tarantool import GUEST_IS_SUPER

PASSWORD: Final = "secret"
"""Of every user who has one."""

LUA: Final = f"""\
{GUEST_IS_SUPER}
box.schema.user.passwd('admin', '{PASSWORD}')
listed = {{call = function() return box.session.user() end}}
unlisted = {{call = function() return box.session.user() end}}
"""

app = Application("random requests")


@app.setup
def set_up(box: Box) -> None:
    """Let guest do everything, as a row says; let admin log in."""
    box.schema.user.grant("guest", "super", if_not_exists=True)
    box.schema.user.passwd("admin", PASSWORD)


@app.procedure("listed.call")
def listed(box: Box, *arguments: object) -> str:
    """Is in `_func`."""
    return box.session.user()


@app.procedure("unlisted.call")
def unlisted(box: Box, *arguments: object) -> str:
    """Is not in `_func`."""
    return box.session.user()
