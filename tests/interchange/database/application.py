"""Transactions of several statements in a procedure of our server; the real Tarantool has the same in Lua."""

from typing import Any

from iproto_server import Application, Box

app = Application("interchange")

APPLICATION = "tests.interchange.database.application:app"

LUA = """\
interchange = {}
local function run(steps)
    for _, step in ipairs(steps) do
        local target = box.space[step[1]] or box.sequence[step[1]]
        target[step[2]](target, unpack(step, 3, table.maxn(step)))
    end
end
function interchange.atomically(steps)
    box.begin()
    run(steps)
    box.commit()
end
function interchange.in_vain(steps)
    box.begin()
    run(steps)
    box.rollback()
end
function interchange.grant_for_all(role)
    box.schema.role.grant(role, 'read,write', 'universe')
    box.schema.role.grant(role, 'create,drop', 'space')
end
-- A space cannot be sent to a client.
local create_space = box.schema.space.create
function box.schema.space.create(...) create_space(...) end
-- What guest may do is in the database, which is not to be changed. So guest becomes somebody else.
box.session.on_connect(function() box.session.su('admin') end)
"""


def _run(box: Box, steps: list[list[Any]]) -> None:
    for name, method, *arguments in steps:
        target = box.space[name] if name in box.space else box.sequence[name]
        getattr(target, method)(*arguments)


@app.procedure("interchange.atomically")
def atomically(box: Box, steps: list[list[Any]]) -> None:
    """Execute all steps in one transaction."""
    _run(box, steps)


@app.procedure("interchange.in_vain")
def in_vain(box: Box, steps: list[list[Any]]) -> None:
    """Execute all steps, and roll them back."""
    _run(box, steps)
    box.rollback()


@app.procedure("interchange.grant_for_all")
def grant_for_all(box: Box, role: str) -> None:
    """Grant rights that do not concern a single object; only admin can do that."""
    with box.session.su("admin"):
        box.schema.role.grant(role, "read,write", "universe")
        box.schema.role.grant(role, "create,drop", "space")
