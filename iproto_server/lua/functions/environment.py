"""Environment variables for `os_extensions.lua`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from iproto_server.lua.errors import HostError


def environment_list() -> tuple[bytes, ...]:
    """Names and values, alternating."""
    return tuple(part for variable in os.environb.items() for part in variable)


def environment_set(name: bytes, value: bytes | None) -> None:
    """Set a variable, or remove it if the value is None.

    Raises:
        HostError: a variable cannot have this name.
    """
    if not name or b"=" in name:
        raise HostError(f"setenv: invalid variable name '{name.decode('utf-8', 'replace')}'")
    if value is None:
        os.environb.pop(name, None)
    else:
        os.environb[name] = value


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "environment_list": environment_list,
    "environment_set": environment_set,
}
