"""The texts of exceptions that applications raise."""

from __future__ import annotations


def text_of(error: BaseException) -> str:
    """Return an exception's text; if its `__str__` raises, the same text as a traceback shows."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001  # an application's code must not hide its first error
        return "<exception str() failed>"
