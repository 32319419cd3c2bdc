"""Unicode for `utf8.lua`: categories, case and the order of texts."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from iproto_server.lua.errors import HostError

_STRENGTH: Final = {False: "TERTIARY", True: "PRIMARY"}


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def upper(text: bytes) -> bytes:
    """A text in capitals; invalid bytes stay as they are."""
    return _decoded(text).upper().encode("utf-8", "surrogateescape")


def lower(text: bytes) -> bytes:
    """A text in small letters; invalid bytes stay as they are."""
    return _decoded(text).lower().encode("utf-8", "surrogateescape")


def category(code: int) -> bytes:
    """The general category of a code point, as `Lu`."""
    return unicodedata.category(chr(code)).encode()


@cache
def _sort_key(ignore_case: bool) -> Callable[[str], bytes]:
    # Imported at its first use, because it takes the database with it, which many scripts never need.
    from iproto_server.box.key.icu import sort_key_of
    from iproto_server.errors import BoxError

    try:
        return sort_key_of("", {"strength": _STRENGTH[ignore_case]})
    except BoxError as error:
        raise HostError(str(error)) from error


def compare(left: bytes, right: bytes, ignore_case: bool) -> int:
    """Compare texts in the order of ICU's root collation.

    Parameters:
        left: a text.
        right: a text.
        ignore_case: whether only base letters count.

    Returns:
        -1, 0 or 1.

    Raises:
        HostError: ICU is not installed.
    """
    key = _sort_key(ignore_case)
    first, second = key(_decoded(left)), key(_decoded(right))
    return (first > second) - (first < second)


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "unicode_upper": upper,
    "unicode_lower": lower,
    "unicode_category": category,
    "unicode_compare": compare,
}
