"""What the servers that are written to have: spaces, and procedures that put rows into them.

`app` is for ours, `LUA` the same for a Tarantool.
"""

from __future__ import annotations

from typing import Any, Final

from iproto_server import Application, Box, BoxError, Tuple

FORMAT: Final[list[dict[str, Any]]] = [
    {"name": "id", "type": "unsigned"},
    {"name": "name", "type": "string", "is_nullable": True},
    {"name": "price", "type": "decimal", "is_nullable": True},
    {"name": "code", "type": "uuid", "is_nullable": True},
    {"name": "share", "type": "double", "is_nullable": True},
    {"name": "delta", "type": "integer", "is_nullable": True},
    {"name": "flag", "type": "boolean", "is_nullable": True},
    {"name": "data", "type": "any", "is_nullable": True},
    {"name": "note", "type": "map", "is_nullable": True},
]

USER, PASSWORD = "writer", "s3cret"

app = Application("sink")


@app.setup
def create_schema(box: Box) -> None:
    """Make the spaces and a user on the first start."""
    if not box.schema.user.exists(USER):
        box.schema.user.create(USER, password=PASSWORD)
        box.schema.user.grant(USER, "read,write,execute", "universe")
    things = box.schema.create_space("things", format=FORMAT, if_not_exists=True)
    things.create_index("primary", parts=["id"], if_not_exists=True)
    calls = box.schema.create_space("calls", if_not_exists=True)
    calls.create_index("primary", parts=[(0, "unsigned")], if_not_exists=True)
    fields = [("id", "unsigned"), ("name", "string")]
    numbered = box.schema.create_space("numbered", format=fields, if_not_exists=True)
    numbered.create_index("primary", parts=["id"], sequence=True, if_not_exists=True)
    fields = [("query", "string"), ("batch", "unsigned")]
    batches = box.schema.create_space("spark_batches", format=fields, if_not_exists=True)
    batches.create_index("primary", parts=["query"], if_not_exists=True)


@app.procedure("keep")
def keep(box: Box, *arguments: object) -> int:
    """Keep the arguments of a call, of which the first is its number; 13 is refused."""
    if arguments[0] == 13:
        raise BoxError.procedure("thirteen is not kept")
    box.space["calls"].replace(list(arguments))
    return len(arguments)


@app.procedure("number")
def number(box: Box, name: str) -> Tuple:
    """Keep a name under the next number."""
    return box.space["numbered"].insert([None, name])


LUA: Final = """
box.once('sink', function()
    box.schema.user.create('writer', {password = 's3cret'})
    box.schema.user.grant('writer', 'read,write,execute', 'universe')
    local things = box.schema.space.create('things', {format = {
        {name = 'id', type = 'unsigned'},
        {name = 'name', type = 'string', is_nullable = true},
        {name = 'price', type = 'decimal', is_nullable = true},
        {name = 'code', type = 'uuid', is_nullable = true},
        {name = 'share', type = 'double', is_nullable = true},
        {name = 'delta', type = 'integer', is_nullable = true},
        {name = 'flag', type = 'boolean', is_nullable = true},
        {name = 'data', type = 'any', is_nullable = true},
        {name = 'note', type = 'map', is_nullable = true},
    }})
    things:create_index('primary', {parts = {'id'}})
    box.schema.space.create('calls'):create_index('primary', {parts = {1, 'unsigned'}})
end)
function keep(...)
    if ... == 13 then
        error('thirteen is not kept', 0)
    end
    box.space.calls:replace({...})
    return select('#', ...)
end
"""
