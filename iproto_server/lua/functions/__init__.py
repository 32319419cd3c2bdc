"""Functions of Python for modules of Lua, which call them as `host.NAME(...)`. Texts are bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from iproto_server.lua.functions import cipher, digest, error_number, process, unicode_text

FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **cipher.FUNCTIONS,
    **digest.FUNCTIONS,
    **error_number.FUNCTIONS,
    **process.FUNCTIONS,
    **unicode_text.FUNCTIONS,
}
"""All of them, by name."""
