"""Spaces whose rows no snapshot has are refused by name, instead of read as empty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.schema.definitions import Definitions, SpaceDefinition
from pyspark_tarantool.source.stream.stream_reader import _check_stored
from tests.real_tarantool import RealTarantool
from tests.spark.source.changing_spaces import INDEX, SPACE, Database, primary
from tests.spark.source.reading import Read
from tests.storage.files import insertion, replacement

_STATES = ("snapshot", "current", "at_lsn")

_LIFE = """
local v = box.schema.space.create('v', {engine = 'vinyl'}) v:create_index('pk')
local m = box.schema.space.create('m') m:create_index('pk')
local t = box.schema.space.create('t', {temporary = true}) t:create_index('pk')
for i = 1, 5 do v:insert{i} m:insert{i} t:insert{i} end
box.snapshot()
v:insert{6} m:insert{6} t:insert{6}
"""


def _options(mode: str) -> dict[str, Any]:
    return {"mode": mode, **({"lsn": 3} if mode == "at_lsn" else {})}


def _one_space(directory: Path, engine: str = "memtx", flags: object = None) -> None:
    """A directory with a space 600, `jobs`, and one row in a log."""
    fields = [{"name": "id", "type": "unsigned"}]
    space = replacement(SPACE, 600, 1, "jobs", engine, 0, {} if flags is None else flags, fields)
    Database(directory).log(space, primary(600), insertion(600, 1))


@pytest.mark.parametrize("mode", ["current", "at_lsn"])
@pytest.mark.parametrize("engine", ["vinyl", "blackhole", "memcs"])
def test_states_of_other_engines_are_refused(tmp_path: Path, engine: str, mode: str) -> None:
    _one_space(tmp_path, engine)
    with pytest.raises(SourceError, match=rf"space 'jobs' is of the engine {engine}: .*mode=changes"):
        Read(tmp_path, space="jobs", **_options(mode))
    assert Read(tmp_path, space="jobs", mode="changes").column("operation") == ["INSERT"]


@pytest.mark.parametrize(
    "flags",
    [{"temporary": True}, {"type": "temporary"}, {"type": "data-temporary"}, "temporary", "a, temporary"],
)
@pytest.mark.parametrize("mode", ["current", "changes"])
def test_temporary_spaces_are_refused(tmp_path: Path, mode: str, flags: object) -> None:
    _one_space(tmp_path, flags=flags)
    with pytest.raises(SourceError, match=r"space 'jobs' is temporary: .*neither in snapshots nor in logs"):
        Read(tmp_path, space="jobs", mode=mode)


@pytest.mark.parametrize("flags", [{"temporary": False}, {"type": "normal"}, {"type": "data-local"}, ""])
def test_others_are_read(tmp_path: Path, flags: object) -> None:
    _one_space(tmp_path, flags=flags)
    assert len(Read(tmp_path, space="jobs").rows) == 1


@pytest.mark.parametrize("mode", [*_STATES, "changes"])
def test_views_are_refused(tmp_path: Path, mode: str) -> None:
    _one_space(tmp_path)
    with pytest.raises(SourceError, match="'_vspace' is a view without rows of its own: read '_space'"):
        Read(tmp_path, space="_vspace", **_options(mode))


def test_streams_of_a_snapshot(caplog: pytest.LogCaptureFixture) -> None:
    """A stream of one such space is refused; one of all spaces names those that the snapshot lacks."""
    jobs = SpaceDefinition(600, "jobs", 0, (), (), {}, False, engine="vinyl")
    others = SpaceDefinition(601, "others", 0, (), (), {}, False)
    definitions = Definitions([jobs, others])
    _check_stored(definitions, frozenset({601, 700}))
    with pytest.raises(SourceError, match="vinyl"):
        _check_stored(definitions, frozenset({600}))
    _check_stored(definitions, None)
    assert caplog.messages == ["the snapshot does not have the rows of jobs"]


@pytest.mark.real_tarantool
def test_what_tarantool_writes(tmp_path: Path) -> None:
    with RealTarantool(tmp_path, _LIFE, {"wal_mode": "'write'"}):
        pass
    for mode in ("snapshot", "current"):
        with pytest.raises(SourceError, match="space 'v' is of the engine vinyl"):
            Read(tmp_path, space="v", mode=mode)
        with pytest.raises(SourceError, match="space 't' is temporary"):
            Read(tmp_path, space="t", mode=mode)
    assert len(Read(tmp_path, space="m").rows) == 6
    assert len(Read(tmp_path, space="v", mode="changes").rows) == 6
    engines = {row["name"]: row["engine"] for row in Read(tmp_path, mode="spaces").rows}
    assert (engines["v"], engines["m"]) == ("vinyl", "memtx")


def test_index_options_do_not_make_a_space_unreadable(tmp_path: Path) -> None:
    fields = [{"name": "id", "type": "uint32", "default": 1}, {"name": "data", "type": "never heard"}]
    options = {"unique": True, "hint": False, "distance": 7, "page_size": -1, "layout": "new"}
    parts = [{"field": 0, "type": "uint32", "sort_order": "asc", "fetch": "fast"}]
    Database(tmp_path).log(
        replacement(SPACE, 600, 1, "jobs", "memtx", 0, {}, fields),
        insertion(INDEX, 600, 0, "primary", "tree", options, parts),
        insertion(600, 7, [1]),
    )
    assert Read(tmp_path, space="jobs", unsigned="bigint").rows == [{"id": 7, "data": "[1]", "_extra": None}]


@pytest.mark.parametrize(
    "fields",
    [
        [["id", "num"], ["data"]],
        [{1: "id", "type": "num"}, {1: "data"}],
        [{1: "id", 2: "num"}, {"name": "data"}],
        [{"name": "id", "type": "NUM"}, "data"],
    ],
)
def test_formats_of_tarantool_1_6(tmp_path: Path, fields: object) -> None:
    """They could be written in several ways; 2.6 converts them at an upgrade."""
    Database(tmp_path).log(
        replacement(SPACE, 600, 1, "jobs", "memtx", 0, "", fields), primary(600), insertion(600, 7, "x")
    )
    assert Read(tmp_path, space="jobs", unsigned="bigint").rows == [{"id": 7, "data": '"x"', "_extra": None}]


def test_flags_that_are_declared_as_text(tmp_path: Path) -> None:
    """As in files of 1.6.8 to 1.7.2: the format of `_space` says `str`, its rows have maps."""
    names = (("id", "num"), ("owner", "num"), ("name", "str"), ("engine", "str"), ("field_count", "num"))
    fields = [{"name": name, "type": kind} for name, kind in (*names, ("flags", "str"), ("format", "*"))]
    Database(tmp_path).log(
        replacement(SPACE, SPACE, 1, "_space", "memtx", 0, {}, fields),
        replacement(SPACE, 600, 1, "jobs", "memtx", 0, {"group_id": 1}, []),
        replacement(SPACE, 601, 1, "old", "memtx", 0, "temporary", []),
    )
    flags = {row["name"]: row["flags"] for row in Read(tmp_path, mode="spaces").rows}
    assert (flags["jobs"], flags["old"]) == ('{"group_id":1}', '"temporary"')
    assert len(Read(tmp_path, space="_space").rows) == len(flags)


def test_a_wrong_format_is_an_error_of_the_source(tmp_path: Path) -> None:
    Database(tmp_path).log(
        replacement(SPACE, 600, 1, "jobs", "memtx", 0, {}, [{"name": "id"}, {"name": "id"}]), primary(600)
    )
    with pytest.raises(SourceError, match="space 'jobs': Space field 'id' is duplicate"):
        Read(tmp_path, space="jobs")
