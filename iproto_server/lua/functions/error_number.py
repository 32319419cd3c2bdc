"""Error numbers of the operating system, for `errno.lua`."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from typing import Any, Final


def error_number(name: bytes) -> int | None:
    """The number of an error by its name, as `ENOENT`; None if this system has none."""
    number: int | None = getattr(errno, name.decode(), None)
    return number


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {"error_number": error_number}
