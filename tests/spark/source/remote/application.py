"""Spaces with different primary keys. `app` is for our server, `LUA` for a Tarantool."""

from __future__ import annotations

from typing import Final

from iproto_server import Application, Box

USER, PASSWORD = "reader", "s3cret"

app = Application("remote")

_SPACES: Final = {
    "numbers": (["id", "text"], [("id", "integer"), ("text", "string")], "tree"),
    "unsigned": (["id"], [("id", "unsigned"), ("text", "string")], "tree"),
    "texts": (["name", "part"], [("part", "unsigned"), ("name", "string")], "tree"),
    "any_order": (["id"], [("id", "unsigned"), ("text", "string")], "hash"),
    "measured": (["id"], [("id", "number"), ("text", "string")], "tree"),
    "flags": (["flag", "id"], [("id", "unsigned"), ("flag", "boolean")], "tree"),
}


@app.setup
def create_schema(box: Box) -> None:
    """Create the spaces and a user on the first start."""
    if not box.schema.user.exists(USER):
        box.schema.user.create(USER, password=PASSWORD)
        box.schema.user.grant(USER, "read,write,execute", "universe")
    for name, (parts, fields, kind) in _SPACES.items():
        space = box.schema.create_space(name, format=fields, if_not_exists=True)
        space.create_index("primary", parts=parts, type=kind, if_not_exists=True)


def _lua() -> str:
    lines = ["box.once('remote', function()"]
    lines.append(f"box.schema.user.create('{USER}', {{password = '{PASSWORD}'}})")
    lines.append(f"box.schema.user.grant('{USER}', 'read,write,execute', 'universe')")
    for name, (parts, fields, kind) in _SPACES.items():
        declared = ", ".join(f"{{name = '{field}', type = '{of}'}}" for field, of in fields)
        key = ", ".join(f"'{part}'" for part in parts)
        lines.append(f"local s = box.schema.space.create('{name}', {{format = {{{declared}}}}})")
        lines.append(f"s:create_index('primary', {{type = '{kind}', parts = {{{key}}}}})")
    return "\n".join([*lines, "end)"])


LUA: Final = _lua()
