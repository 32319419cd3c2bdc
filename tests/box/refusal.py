"""What a test says of a block that the box is to refuse."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from iproto_server import BoxError, ErrorCode


@contextmanager
def refusal(code: ErrorCode, pattern: str | None = None) -> Iterator[None]:
    """A block that must raise a BoxError of this number, with a text in which the pattern is found."""
    with pytest.raises(BoxError, match=pattern) as caught:
        yield
    assert caught.value.code == code, caught.value
