"""Databases that are checked."""

from __future__ import annotations

import json
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any
from uuid import UUID

from iproto_server.codec import msgpack as codec
from iproto_server.storage.snapshot import SnapshotWriter
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, RowEncoder, XlogHeader, XlogWriter
from tests.command_line import Outcome, run
from tests.storage.files import INSTANCE, TIMESTAMP, Request, header

REPLICA_SET = UUID("7ab1a0ee-3bc8-4a3d-8a4f-1c47dd15b5c5")
SPACE = [
    512,
    1,
    "jobs",
    "memtx",
    0,
    {},
    [{"name": "id", "type": "unsigned"}, {"name": "to", "type": "string"}],
]
INDEXES = [
    [512, 0, "pk", "tree", {"unique": True}, [[0, "unsigned"]]],
    [512, 1, "to", "tree", {"unique": True}, [[1, "string"]]],
]


SYSTEM: dict[str, list[list[Any]]] = json.loads(
    package_files("iproto_server.box.catalog").joinpath("bootstrap.json").read_text(encoding="utf-8")
)
SYSTEM["_space"].append(SPACE)
SYSTEM["_index"] += INDEXES
SYSTEM["_schema"] = [
    ["cluster", str(REPLICA_SET)],
    *[row for row in SYSTEM["_schema"] if row[0] != "cluster"],
]
SYSTEM["_cluster"] = [[1, str(INSTANCE)]]
SYSTEM_ROWS = sum(map(len, SYSTEM.values()))


class Database:
    """Files of a database with a space `jobs`, as a server would have left them.

    Args:
        directory: Where they go.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def snapshot(self, lsn: int, *rows: list[Any]) -> Path:
        """Write a snapshot of what was there after so many rows were logged."""
        numbers: dict[str, int] = {fields[2]: fields[0] for fields in SYSTEM["_space"]}
        contents = {numbers[name]: system_rows for name, system_rows in SYSTEM.items()} | {512: list(rows)}
        clock = {1: lsn} if lsn else {}
        with SnapshotWriter(self.directory, header(FileType.SNAPSHOT, clock), TIMESTAMP) as writer:
            for space_id in sorted(contents):
                writer.write(space_id, [codec.pack(fields) for fields in contents[space_id]])
        return writer.path

    def log(
        self, after: int, *transactions: list[Request], end: bool = True, first: int | None = None
    ) -> Path:
        """Write a log that begins after that LSN, a block per transaction."""
        path = self.directory / f"{after:020}.xlog"
        encoder = RowEncoder()
        lsn = after + 1 if first is None else first
        head = XlogHeader(FileType.LOG, INSTANCE, VClock({1: after} if after else {}))
        with path.open("wb", buffering=0) as file:
            writer = XlogWriter.create(file, head, compress=False)
            for changes in transactions:
                writer.write([encoder.transaction(lsn, TIMESTAMP, changes)])
                lsn += len(changes)
            if end:
                writer.end()
        return path

    def check(self, *options: object) -> Outcome:
        """Check it; nothing may be different afterwards."""
        before = self._state()
        outcome = run("check", self.directory, *options)
        assert self._state() == before
        assert outcome.errors == []
        return outcome

    def _state(self) -> dict[Path, tuple[bytes, int]]:
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in self.directory.glob("*.*")}
