"""A context manager for code that must raise a BoxError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from iproto_server import BoxError, ErrorCode


@contextmanager
def refusal(code: ErrorCode, pattern: str | None = None) -> Iterator[None]:
    """A block that must raise a BoxError of this number, with a text that matches the pattern."""
    with pytest.raises(BoxError, match=pattern) as caught:
        yield
    assert caught.value.code == code, caught.value
