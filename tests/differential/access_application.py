"""Procedures of ours for the comparison of rights; the real Tarantool has the same ones in Lua."""

from iproto_server import Application, Box

app = Application("access")

LUA = """\
listed = {call = function() return box.session.user() end}
unlisted = {call = function() return box.session.user() end}
"""


@app.procedure("listed.call")
def listed(box: Box) -> str:
    """Is in `_func`."""
    return box.session.user()


@app.procedure("unlisted.call")
def unlisted(box: Box) -> str:
    """Is not in `_func`."""
    return box.session.user()
