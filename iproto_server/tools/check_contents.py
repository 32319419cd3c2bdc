"""Checking what a database holds once its files are read: rows against formats, indexes against rows."""

from __future__ import annotations

from typing import Any

from iproto_server import codec
from iproto_server.box.box import Box
from iproto_server.box.index import Index
from iproto_server.box.memtx import MemtxSpace
from iproto_server.errors import BoxError
from iproto_server.tools.check_files import Findings


def check_contents(box: Box, findings: Findings) -> int:
    """Check every space.

    Parameters:
        box: holds the database.
        findings: is told what is wrong.

    Returns:
        How many rows there are.
    """
    rows = 0
    for space in box.catalog:
        if space.engine == "memtx" and space.primary is not None:
            rows += len(space.primary)
            _check_space(space, space.primary, findings)
    return rows


def _check_space(space: MemtxSpace, primary: Index, findings: Findings) -> None:
    counts = {index.id: 0 for index in space.multikeys}
    for key, raw in primary.items():
        try:
            fields = codec.unpack(raw)
            space.format.check(fields)
            if primary.key_of(fields, b"") != key:
                findings.problem(
                    f"space {space.name!r}: the primary index has row {_shown(primary, fields)} elsewhere"
                )
            for index in space.secondaries:
                if index.get(index.key_of(fields, key)) != key:
                    row = _shown(primary, fields)
                    findings.problem(f"space {space.name!r}: index {index.name!r} does not lead to row {row}")
            for index in space.multikeys:
                keys = index.all_keys_of(fields, key)
                counts[index.id] += len(keys)
                if any(index.get(each) != key for each in keys):
                    row = _shown(primary, fields)
                    findings.problem(f"space {space.name!r}: index {index.name!r} does not lead to row {row}")
        except BoxError as error:
            findings.problem(f"space {space.name!r}: row {_start(raw)}: {error.message}")
    for index in (*space.secondaries, *space.multikeys):
        of_what = f"{counts[index.id]} elements" if index.is_multikey else f"{len(primary)} rows"
        if len(index) != counts.get(index.id, len(primary)):
            findings.problem(
                f"space {space.name!r}: index {index.name!r} has {len(index)} entries for {of_what}"
            )


def _shown(primary: Index, fields: list[Any]) -> str:
    """A row's primary key."""
    return str(primary.values_of(fields))


def _start(raw: bytes) -> str:
    """How a row begins, for rows that may have no key."""
    return f"{raw[:16].hex()}{'…' if len(raw) > 16 else ''}"
