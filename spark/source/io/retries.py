"""Repeats a look at a directory whose files come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from iproto_server.storage.errors import LogGapError, XlogError

_Result = TypeVar("_Result")

_ATTEMPTS: Final = 4
"""The number of attempts to list a directory while files are created and removed."""


def with_retries(look: Callable[[], _Result]) -> _Result:
    """Retry if the files found are inconsistent, since files are created and removed meanwhile.

    Parameters:
        look: Reads the directory.

    Returns:
        Its result.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return look()
        except (FileNotFoundError, LogGapError, XlogError):
            continue
    return look()
