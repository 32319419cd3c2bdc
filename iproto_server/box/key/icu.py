"""ICU, as far as collations need it: texts as byte strings that sort the way a language wants.

ICU's C library does the work. That of the system is taken where there is one, because a Tarantool on the same
machine compares by it too; else the one that the package `icu4py` brings along (`pip install
iproto-server[collations]`). Releases of ICU differ in a few symbols. The library is looked for when the first
collation is used: loading it takes 5 ms and 3 MB.

Source: ICU's C API, `unicode/ucol.h`, which is called by `ctypes`.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from iproto_server.errors import BoxError, ErrorCode

_VERSIONS: Final = range(99, 49, -1)
_ENCODING: Final = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
_ROOM: Final = 1024
_OFF: Final = 16
_ON: Final = 17

# ICU's numbers for what a row of `_collation` says: the attribute, and the value by its name.
_SWITCH: Final = {"ON": _ON, "OFF": _OFF}
ATTRIBUTES: Final[Mapping[str, tuple[int, Mapping[str, int]]]] = {
    "french_collation": (0, _SWITCH),
    "alternate_handling": (1, {"NON_IGNORABLE": 21, "SHIFTED": 20}),
    "case_first": (2, {"OFF": _OFF, "UPPER_FIRST": 25, "LOWER_FIRST": 24}),
    "case_level": (3, _SWITCH),
    "normalization_mode": (4, _SWITCH),
    "strength": (5, {"PRIMARY": 0, "SECONDARY": 1, "TERTIARY": 2, "QUATERNARY": 3, "IDENTICAL": 15}),
    "numeric_collation": (7, _SWITCH),
}
"""The options of a collation, and for each the values it may have, in capitals."""


class _Library:
    """The functions of one release of ICU; their names end with its number.

    Raises:
        AttributeError: the library has no functions of those names.
    """

    def __init__(self, library: ctypes.CDLL, version: int) -> None:
        pointer, number, status = ctypes.c_void_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_int32)

        def function(name: str, result: Any, *arguments: Any) -> Any:
            found = library[f"{name}_{version}"]
            found.restype, found.argtypes = result, arguments
            return found

        self.open = function("ucol_open", pointer, ctypes.c_char_p, status)
        self.close = function("ucol_close", None, pointer)
        self.set_attribute = function("ucol_setAttribute", None, pointer, number, number, status)
        self.sort_key = function(
            "ucol_getSortKey", number, pointer, ctypes.c_char_p, number, ctypes.c_char_p, number
        )
        self.error_name = function("u_errorName", ctypes.c_char_p, number)


def _candidates() -> Iterator[_Library]:
    """The libraries there are, the best first."""
    for version in _VERSIONS:
        try:
            yield _Library(ctypes.CDLL(f"libicui18n.so.{version}"), version)
        except (OSError, AttributeError):
            continue  # none of that release, or one whose functions have other names
    try:
        version = importlib.import_module("icu4py").icu_version_info[0]
        # What an extension module is linked with is found through the module.
        extension = importlib.import_module("icu4py.messageformat").__file__
    except ImportError:
        return
    yield _Library(ctypes.CDLL(extension), version)


@cache
def _library() -> _Library | None:
    return next(_candidates(), None)


def sort_key_of(locale: str, attributes: Mapping[str, str]) -> Callable[[str], bytes]:
    """Make a function from texts to bytes that sort by a collation; equal texts have equal bytes.

    No key is the beginning of another: each ends with a byte 00, and has no other one.

    Parameters:
        locale: ICU's name of the language and its variant; empty for the root collation.
        attributes: names and values of `ATTRIBUTES`.

    Raises:
        BoxError: UNSUPPORTED (5) where there is no ICU, CANT_CREATE_COLLATION (150) when ICU refuses.
    """
    icu = _library()
    if icu is None:
        raise BoxError(ErrorCode.UNSUPPORTED, "A server without the package icu4py", "collations")
    status = ctypes.c_int32(0)
    collator = icu.open(locale.encode(), ctypes.byref(status))
    if status.value > 0:
        raise BoxError(ErrorCode.CANT_CREATE_COLLATION, icu.error_name(status).decode())
    for name, value in attributes.items():
        number, values = ATTRIBUTES[name]
        icu.set_attribute(collator, number, values[value], ctypes.byref(status))
        if status.value > 0:
            icu.close(collator)
            reason = f"failed to set {name}: {icu.error_name(status).decode()}"
            raise BoxError(ErrorCode.CANT_CREATE_COLLATION, reason)
    make, read, room = icu.sort_key, ctypes.string_at, ctypes.create_string_buffer(_ROOM)

    def sort_key(text: str) -> bytes:
        try:
            data = text.encode(_ENCODING)
        except UnicodeEncodeError:
            # Bytes that are no UTF-8 count as U+FFFD.
            data = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode(_ENCODING)
        count = len(data) >> 1
        length = make(collator, data, count, room, _ROOM)
        if length <= _ROOM:
            return read(room, length)
        larger = ctypes.create_string_buffer(length)
        return read(larger, make(collator, data, count, larger, length))

    return sort_key
