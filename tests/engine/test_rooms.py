"""The rooms of the engine's core: what each may include, and how large they and their files may be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.programs import REPOSITORY

CORE = REPOSITORY / "iproto_server" / "engine" / "core"
ROOMS = (
    *("values", "memory", "key", "tree", "index"),
    *("update", "log", "space", "transaction", "change"),
)
"""From the bottom up: a room includes its own headers and those of rooms before it."""
PRIVATE = {"leaf.h", "pieces.h", "steps.h"}
"""Headers for the files of their own room alone."""
SHARED_WITH_SPARK = {"../../engine/core/values/msgpack.h"}
"""What `reader.h` of the binding includes, which is a part of Spark's module, too."""
FILES_MAX, LINES_MAX = 16, 420

SOURCES = sorted(CORE.rglob("*.[ch]"))
BINDING = sorted((REPOSITORY / "iproto_server" / "native").rglob("*.[ch]"))


def included(file: Path) -> list[str]:
    """The paths of a file's own includes, as they are written."""
    return re.findall(r'^#include "(.+)"$', file.read_text(), re.MULTILINE)


def named(files: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("file", files, ids=lambda file: "/".join(file.parts[-2:]))


def test_all_rooms_are_listed() -> None:
    assert {folder.name for folder in CORE.iterdir() if any(folder.glob("*.[ch]"))} == {*ROOMS}


@named([file for file in SOURCES if file.parent != CORE])
def test_a_room_includes_rooms_below_it(file: Path) -> None:
    own = ROOMS.index(file.parent.name)
    for path in included(file):
        header = (file.parent / path).resolve()
        assert header.exists(), path
        assert ROOMS.index(header.parent.name) <= own, path
        assert header.name not in PRIVATE or header.parent == file.parent, path


@named(BINDING)
def test_the_binding_includes_the_header_of_the_engine(file: Path) -> None:
    of_core = {path for path in included(file) if "engine/core" in path}
    assert of_core <= {"../../engine/core/iproto_engine.h", *SHARED_WITH_SPARK}


@named(SOURCES)
def test_files_are_short(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= LINES_MAX


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_are_small(room: str) -> None:
    assert len([*(CORE / room).iterdir()]) <= FILES_MAX
