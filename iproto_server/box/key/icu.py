"""ICU for collations: sort keys of texts in the order of a language.

The system's C library of ICU is preferred, because Tarantool on the same machine uses it too; otherwise the
one in the package `icu4py` (`pip install iproto-server[collations]`). Releases of ICU differ in a few
symbols. The library is loaded when the first collation is used, which takes 5 ms and 3 MB.

Source: ICU's C API, `unicode/ucol.h`, called through `ctypes`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from iproto_server.errors import BoxError, ErrorCode

if TYPE_CHECKING:
    import ctypes

_VERSIONS: Final = range(99, 49, -1)
_ENCODING: Final = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
_BUFFER_SIZE: Final = 1024
_OFF: Final = 16
_ON: Final = 17

# ICU's numbers of attributes and values, by their names in `_collation`.
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
"""The options of a collation with their values, in capitals."""


class _Library:
    """The functions of one release of ICU, whose names end with its number.

    Raises:
        AttributeError: the library lacks these functions.
    """

    def __init__(self, library: ctypes.CDLL, version: int) -> None:
        import ctypes

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
    """Available libraries, the preferred ones first."""
    import ctypes

    for version in _VERSIONS:
        try:
            yield _Library(ctypes.CDLL(f"libicui18n.so.{version}"), version)
        except (OSError, AttributeError):
            continue  # not installed, or functions with other names
    try:
        version = importlib.import_module("icu4py").icu_version_info[0]
        # The module's file also gives access to the library it is linked with.
        extension = importlib.import_module("icu4py.messageformat").__file__
    except ImportError:
        return
    yield _Library(ctypes.CDLL(extension), version)


@cache
def _library() -> _Library | None:
    return next(_candidates(), None)


def sort_key_of(locale: str, attributes: Mapping[str, str]) -> Callable[[str], bytes]:
    """Make a function that maps texts to sort keys of a collation; equal texts have equal keys.

    No key is a prefix of another: each ends with its only byte 00.

    Parameters:
        locale: ICU's name of the language and variant; empty for the root collation.
        attributes: values by name, as in `ATTRIBUTES`.

    Raises:
        BoxError: UNSUPPORTED (5) without ICU, CANT_CREATE_COLLATION (150) if ICU refuses the collation.
    """
    import ctypes

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
    make, read, buffer = icu.sort_key, ctypes.string_at, ctypes.create_string_buffer(_BUFFER_SIZE)

    def sort_key(text: str) -> bytes:
        try:
            data = text.encode(_ENCODING)
        except UnicodeEncodeError:
            # Invalid UTF-8 counts as U+FFFD.
            data = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode(_ENCODING)
        count = len(data) >> 1
        length = make(collator, data, count, buffer, _BUFFER_SIZE)
        if length <= _BUFFER_SIZE:
            return read(buffer, length)
        larger = ctypes.create_string_buffer(length)
        return read(larger, make(collator, data, count, larger, length))

    return sort_key
