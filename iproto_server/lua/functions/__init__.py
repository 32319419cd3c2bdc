"""Functions of Python that the modules call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from iproto_server.lua.functions import (
    cipher,
    compiled,
    decimal_number,
    digest,
    environment,
    error_code,
    error_number,
    file,
    identifier,
    log,
    process,
    tuple_operations,
    unicode_text,
)

FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **cipher.FUNCTIONS,
    **compiled.FUNCTIONS,
    **decimal_number.FUNCTIONS,
    **digest.FUNCTIONS,
    **environment.FUNCTIONS,
    **error_code.FUNCTIONS,
    **error_number.FUNCTIONS,
    **file.FUNCTIONS,
    **identifier.FUNCTIONS,
    **log.FUNCTIONS,
    **process.FUNCTIONS,
    **tuple_operations.FUNCTIONS,
    **unicode_text.FUNCTIONS,
}
"""All of them, by name."""
