"""An application for our server that does what `LUA` does in a real Tarantool."""

from typing import Final

from iproto_server import Application, Box
from iproto_server.box.catalog.catalog import Catalog
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.box.memtx.consistency import faults_of
from tests.real_tarantool import GUEST_IS_SUPER

PASSWORD: Final = "secret"
"""Of every user who has one."""

LUA: Final = f"""\
{GUEST_IS_SUPER}
box.schema.user.passwd('admin', '{PASSWORD}')
listed = {{call = function() return box.session.user() end}}
unlisted = {{call = function() return box.session.user() end}}
"""

INDEX_FAULTS: Final = "index_faults"
"""The procedure that reports faults of indexes."""

_FAULTS_MAX: Final = 10

app = Application("random requests")
_found: list[str] = []


@app.setup
def set_up(box: Box) -> None:
    """Let guest do everything, as a row says; let admin log in; check indexes after DDL."""
    box.schema.user.grant("guest", "super", if_not_exists=True)
    box.schema.user.passwd("admin", PASSWORD)
    announce = box.catalog.on_schema_change

    def schema_changed(version: int) -> None:
        announce(version)
        _check(box.catalog, 512, f"schema version {version}: ")

    box.catalog.on_schema_change = schema_changed


def _check(catalog: Catalog, first_id: int, when: str) -> None:
    """Compare the indexes of all spaces from an id on with their rows."""
    for space in catalog:
        if space.id >= first_id and not isinstance(space, SysviewSpace):
            _found.extend(f"{when}space {space.name!r}: {fault}" for fault in faults_of(space))


@app.procedure(INDEX_FAULTS)
def index_faults(box: Box) -> list[str]:
    """Return the faults of indexes after any DDL since the last call, or now; the first ones."""
    _check(box.catalog, 0, "")
    found = _found[:_FAULTS_MAX]
    _found.clear()
    return found


@app.procedure("listed.call")
def listed(box: Box, *arguments: object) -> str:
    """Has a row in `_func`."""
    return box.session.user()


@app.procedure("unlisted.call")
def unlisted(box: Box, *arguments: object) -> str:
    """Has no row in `_func`."""
    return box.session.user()
