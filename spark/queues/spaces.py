"""The existing and dropped spaces in the files that a query reads."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFiles
from pyspark_tarantool.source.options import OnDamaged, ReadOptions
from pyspark_tarantool.source.schema.definitions import Definitions
from pyspark_tarantool.source.schema.system_rows import read_definitions

_OF_FILES = ("wal_dir", "damaged")


def spaces_of(path: str | list[str], options: Mapping[str, str], *, with_dropped: bool) -> Definitions:
    """Find the spaces in files.

    Parameters:
        path: Files, directories and globs.
        options: The data source's, of which those that select files are used.
        with_dropped: Whether to include dropped spaces.

    Raises:
        SourceError: If there are no files.
        XlogError: If they cannot be read.
    """
    given = {name: options[name] for name in _OF_FILES if name in options}
    paths = [path] if isinstance(path, str) else path
    parsed = ReadOptions.parse({**given, "mode": "changes", "paths": json.dumps(paths)})
    files = DataFiles.find(parsed)
    # Readers of the rows report damage; here it is only skipped.
    damage = DamageHandler(OnDamaged(parsed.damaged))
    if with_dropped:
        oldest = files.snapshots[0] if files.snapshots else None
        return read_definitions(oldest, files.logs, damage).with_dropped()
    newest = files.snapshots[-1] if files.snapshots else None
    logs = [part.file for part in files.logs_after(newest.header.vclock)] if newest else files.logs
    return read_definitions(newest, logs, damage)
