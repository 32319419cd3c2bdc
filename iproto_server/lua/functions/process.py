"""The process and its version, for `tarantool.lua`."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

ANNOUNCED_VERSION: Final = b"2.6.0-0-g0000000"
"""The release of Tarantool whose modules these are, in the form of its versions."""

_STARTED: Final = time.monotonic()


def announced_version() -> bytes:
    """The version that Lua code sees; a server may give another one to its runtime."""
    return ANNOUNCED_VERSION


def process_id(*_: object) -> int:
    """The number of this process; arguments are ignored."""
    return os.getpid()


def process_uptime(*_: object) -> float:
    """Seconds since this module was loaded; arguments are ignored."""
    return time.monotonic() - _STARTED


def platform_name() -> bytes:
    """The system and the processor, as `Linux-x86_64-Python`."""
    return f"{platform.system()}-{platform.machine()}-{platform.python_implementation()}".encode()


def compiler() -> bytes:
    """The compiler that Python was built with."""
    return platform.python_compiler().encode()


def multiarch() -> bytes | None:
    """The name of this platform in the paths of Debian's libraries; None elsewhere."""
    name = getattr(sys.implementation, "_multiarch", None)
    return None if name is None else str(name).encode()


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "announced_version": announced_version,
    "compiler": compiler,
    "multiarch": multiarch,
    "platform": platform_name,
    "process_id": process_id,
    "process_uptime": process_uptime,
}
