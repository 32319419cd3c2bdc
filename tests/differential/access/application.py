"""Our procedures for comparisons of rights; the real Tarantool has the same ones in Lua."""

from iproto_server import Application, Box

app = Application("access")

LUA = """\
listed = {call = function() return box.session.user() end}
unlisted = {call = function() return box.session.user() end}
owned = {call = function() return box.session.effective_user() end}
"""


@app.procedure("listed.call")
def listed(box: Box) -> str:
    """Has a row in `_func`."""
    return box.session.user()


@app.procedure("unlisted.call")
def unlisted(box: Box) -> str:
    """Has no row in `_func`."""
    return box.session.user()


@app.procedure("owned.call")
def owned(box: Box) -> str:
    """Has a row in `_func`, and an owner."""
    return box.session.effective_user()


boss = Application("boss")
BOSS_LUA = """\
box.schema.user.create('boss', {password = 'secret'})
box.schema.user.grant('boss', 'super')
"""


@boss.setup
def create_boss(box: Box) -> None:
    """Create a user with all rights."""
    box.schema.user.create("boss", password="secret", if_not_exists=True)
    box.schema.user.grant("boss", "super", if_not_exists=True)
