"""The engine's API in C, called through the compiled module, as Lua or SQL code in the same process would."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import pytest

from tests.programs import REPOSITORY

HEADER = REPOSITORY / "iproto_server" / "engine" / "core" / "iproto_engine.h"
UNSIGNED, STRING = 1, 2
TREE, ALL = 0, 2
TUPLE_FOUND = 3


class Field(ctypes.Structure):
    """IprotoField."""

    _fields_ = (("name", ctypes.c_char_p), ("type", ctypes.c_int), ("is_nullable", ctypes.c_int))


class Part(ctypes.Structure):
    """IprotoPart."""

    _fields_ = (("field_no", ctypes.c_uint32), ("type", ctypes.c_int), ("is_nullable", ctypes.c_int))


class Slice(ctypes.Structure):
    """IprotoTuple."""

    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_size_t))


def declared() -> set[str]:
    return set(re.findall(r"^IPROTO_API .*?\b(iproto_\w+)\(", HEADER.read_text(), re.MULTILINE))


@pytest.fixture
def api() -> Any:
    """The functions that the compiled module exports, with the interpreter's lock held during calls."""
    from iproto_server.native import _native

    library = ctypes.PyDLL(_native.__file__)
    for name in declared():
        function = getattr(library, name)
        if name.endswith(("_open", "_open_by_id", "_create")):
            function.restype = ctypes.c_void_p
    library.iproto_error_message.restype = ctypes.c_char_p
    library.iproto_space_len.restype = ctypes.c_int64
    return library


def test_every_public_function_is_exported(api: Any) -> None:
    assert [name for name in sorted(declared()) if not hasattr(api, name)] == []


def test_the_version_is_that_of_the_header(api: Any) -> None:
    [major] = re.findall(r"VERSION_MAJOR (\d+)$", HEADER.read_text(), re.MULTILINE)
    [minor] = re.findall(r"VERSION_MINOR (\d+)$", HEADER.read_text(), re.MULTILINE)
    assert api.iproto_engine_version() == int(major) << 16 | int(minor)


def test_internal_functions_are_not_exported(api: Any) -> None:
    assert not hasattr(api, "change_row")
    assert not hasattr(api, "engine_fail")


def test_rows_are_stored_and_read(api: Any) -> None:
    engine = ctypes.c_void_p(api.iproto_engine_open())
    fields = (Field * 2)(Field(b"id", UNSIGNED, 0), Field(b"name", STRING, 0))
    space = ctypes.c_void_p(api.iproto_space_create(engine, 512, b"space", fields, ctypes.c_size_t(2), 0))
    part = Part(0, UNSIGNED, 0)
    index = ctypes.c_void_p(
        api.iproto_index_create(space, b"primary", TREE, 1, ctypes.byref(part), ctypes.c_size_t(1))
    )
    for number in (3, 1, 2):
        row = bytes([0x92, number, 0xA1]) + b"x"
        assert api.iproto_space_insert(space, row, ctypes.c_size_t(len(row)), None) == 0
    assert api.iproto_space_insert(space, b"\x92\x01\xa1y", ctypes.c_size_t(4), None) == -1
    assert api.iproto_error_code() == TUPLE_FOUND
    assert api.iproto_error_message() == b"Duplicate key exists in unique index 'primary' in space 'space'"
    assert api.iproto_space_len(space) == 3
    cursor = ctypes.c_void_p(api.iproto_cursor_open(index, ALL, None, ctypes.c_size_t(0)))
    found, row_slice = [], Slice()
    while api.iproto_cursor_next(cursor, ctypes.byref(row_slice)) == 1:
        found.append(ctypes.string_at(row_slice.data, row_slice.size)[1])
    api.iproto_cursor_close(cursor)
    api.iproto_engine_close(engine)
    assert found == [1, 2, 3]
