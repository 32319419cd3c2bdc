"""Random UUIDs for `uuid.lua`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final


def uuid_random() -> bytes:
    """Sixteen bytes of a UUID of version 4, with each number in the byte order of the network."""
    return uuid.uuid4().bytes


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {"uuid_random": uuid_random}
