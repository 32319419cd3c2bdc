"""Checking what a database holds once its files are read: rows against formats, indexes against rows."""

from __future__ import annotations

from iproto_server.box.api.box import Box
from iproto_server.box.memtx.consistency import faults_of
from iproto_server.tools.files.check_files import Findings


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
            for fault in faults_of(space):
                findings.problem(f"space {space.name!r}: {fault}")
    return rows
