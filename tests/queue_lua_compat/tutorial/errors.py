"""Errors of the queue's calls."""

from __future__ import annotations

import pytest

from iproto_server import BoxError
from tests.queue_lua_compat.conftest import Client

NOW = 1_600_000_000_000_000_000


def error_of(client: Client, *call: object) -> tuple[int, str]:
    """Return the error of a failed call."""
    with pytest.raises(BoxError) as raised:
        client.call(*call)  # type: ignore[arg-type]
    return raised.value.code, raised.value.message
