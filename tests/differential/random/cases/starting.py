"""Starts a real Tarantool and our server from the files that our server has after a case."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgpack

from iproto_server import Box
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.storage.errors import StorageError
from iproto_server.storage.recovery.recovery import recover
from tests.differential.ddl.system_rows import SPACE, call
from tests.differential.random.answer import Answer
from tests.differential.random.request import Request
from tests.differential.random.servers import Servers
from tests.iproto_client import INDEX_ID, ITERATOR, KEY, LIMIT, SELECT, SPACE_ID

_ALL: Final = 2**32 - 1

# Rows are compared as bytes: msgpack of Lua would encode decoded values differently.
_LUA: Final = """\
box.cfg{wal_mode = 'none', memtx_memory = 64 * 1024 * 1024, log = 'starting.log', checkpoint_interval = 0}
local ffi = require('ffi')
ffi.cdef('size_t box_tuple_bsize(box_tuple_t *tuple);')
ffi.cdef('ssize_t box_tuple_to_buf(box_tuple_t *tuple, char *buf, size_t size);')
local out = io.open('starting.rows', 'wb')
for _, definition in box.space[280]:pairs() do
    local space = box.space[definition[1]]
    if space and space.engine == 'memtx' and not space.temporary and space.index[0] then
        for _, row in space:pairs() do
            local size = tonumber(ffi.C.box_tuple_bsize(row))
            local buffer = ffi.new('char[?]', size)
            ffi.C.box_tuple_to_buf(row, buffer, size)
            out:write(definition[1], ' ', size, '\\n', ffi.string(buffer, size))
        end
    end
end
out:close()
os.exit(0)
"""

Rows = Mapping[int, list[bytes]]
"""The rows of each non-empty space, sorted."""


@dataclass(frozen=True, slots=True)
class NotStarted:
    """A case after which a server does not start from our files, or has other rows then.

    Parameters:
        case: The requests.
        who: The server and the files.
        reason: The fault.
        before: The requests of the case before, if they are needed, too; their effects were removed.
    """

    case: Sequence[Request]
    who: str
    reason: str
    before: Sequence[Request] = ()

    @property
    def signature(self) -> tuple[object, ...]:
        """Identifies the kind of fault."""
        return self.who, "".join(letter for letter in self.reason[:60] if not letter.isdigit())

    def __str__(self) -> str:
        before = [f"  before: {request}" for request in self.before]
        lines = [f"{number:3}. {request}" for number, request in enumerate(self.case, start=1)]
        return "\n".join([*before, *lines, f"     {self.who}: {self.reason}"])


class _Refused(Exception):
    """A server does not start."""


def fault_after(case: Sequence[Request], servers: Servers) -> NotStarted | None:
    """Start from our server's files, first from a snapshot and the log behind it, then from a new snapshot.

    Parameters:
        case: The requests of the case.
        servers: Both servers after the case.

    Returns:
        The fault; None if there is none.
    """
    ours = servers.our_files
    for kind in ("log", "snapshot"):
        if kind == "snapshot":
            _take_snapshot(servers)
        expected = _rows_of_server(servers)
        copy = ours.with_name(f"{ours.name}-started")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(ours, copy)
        for who, rows_from in (("a real Tarantool", _rows_in_tarantool), ("ours", _rows_in_ours)):
            place = f"{who}, from our {kind}"
            try:
                found = rows_from(copy)
            except _Refused as refusal:
                return NotStarted(case, place, str(refusal))
            if found != expected:
                return NotStarted(case, place, f"has other rows: {_described(found, expected)}")
    return None


def _described(found: Rows, expected: Rows) -> str:
    texts = []
    for space in sorted(found.keys() | expected.keys()):
        theirs, ours = found.get(space, []), expected.get(space, [])
        if theirs != ours:
            missing = [_shown(row) for row in ours if row not in theirs]
            surplus = [_shown(row) for row in theirs if row not in ours]
            texts.append(f"space {space}: missing {missing[:3]}, surplus {surplus[:3]}")
    return "; ".join(texts)


def _shown(raw: bytes) -> str:
    return str(msgpack.unpackb(raw, strict_map_key=False, unicode_errors="surrogateescape"))[:300]


def _take_snapshot(servers: Servers) -> None:
    answer = servers.ours.ask_one(Request.of(call("box.snapshot"), "admin"))
    assert not answer.status, f"no snapshot: {answer}"


def _rows_of_server(servers: Servers) -> Rows:
    """Return the contents according to our server."""
    definitions = _everything(servers, [SPACE])[SPACE]
    wanted = []
    for raw in definitions:
        space_id, _, _, engine, _, flags, *_ = msgpack.unpackb(
            raw, strict_map_key=False, unicode_errors="surrogateescape"
        )
        if engine == "memtx" and not flags.get("temporary"):
            wanted.append(space_id)
    return _everything(servers, wanted)


def _everything(servers: Servers, spaces: Sequence[int]) -> Rows:
    answers = servers.ours.ask(
        [
            Request(SELECT, {SPACE_ID: space, INDEX_ID: 0, ITERATOR: 2, LIMIT: _ALL, KEY: []}, user="admin")
            for space in spaces
        ],
        "admin",
    )
    rows = {}
    for space, answer in zip(spaces, answers, strict=False):
        if isinstance(answer, Answer) and not answer.status:
            rows[space] = sorted(answer.rows())
    return {space: found for space, found in rows.items() if found}


def _rows_in_tarantool(directory: Path) -> Rows:
    script = directory / "starting.lua"
    script.write_text(_LUA)
    log = directory / "starting.log"
    log.unlink(missing_ok=True)
    ended = subprocess.run(
        ["tarantool", script.name], cwd=directory, capture_output=True, text=True, timeout=120, check=False
    )
    if ended.returncode != 0:
        errors = [
            line for line in log.read_text(errors="replace").splitlines() if " E> " in line or " F> " in line
        ]
        raise _Refused(" / ".join(line.partition("> ")[2] for line in errors) or ended.stderr)
    return _sorted(_dumped((directory / "starting.rows").read_bytes()))


def _dumped(data: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position < len(data):
        end = data.index(b"\n", position)
        space, size = map(int, data[position:end].split())
        position = end + 1 + size
        yield space, data[end + 1 : position]


def _rows_in_ours(directory: Path) -> Rows:
    box = Box()
    try:
        recover(box, directory, directory, read_only=True)
    except StorageError as error:
        raise _Refused(str(error)) from None
    return _sorted(
        (space.id, raw)
        for space in box.catalog
        if not isinstance(space, SysviewSpace)
        and not space.is_temporary
        and space.engine == "memtx"
        and space.primary is not None
        for raw in space.rows()
    )


def _sorted(rows: Iterator[tuple[int, bytes]]) -> Rows:
    by_space: dict[int, list[bytes]] = {}
    for space, raw in rows:
        by_space.setdefault(space, []).append(raw)
    return {space: sorted(found) for space, found in by_space.items()}
