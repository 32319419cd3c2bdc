"""Memory of the process, as reported by the system."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Final

_PAGE: Final = resource.getpagesize()
_STATUS: Final = Path("/proc/self/statm")
_GROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


def memory_used() -> int:
    """Return the resident bytes of the process; if the system does not report them, their maximum so far."""
    try:
        return int(_STATUS.read_text().split()[1]) * _PAGE
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def memory_virtual() -> int:
    """Return the bytes of the process's address space; 0 if the system does not report them."""
    try:
        return int(_STATUS.read_text().split()[0]) * _PAGE
    except OSError:
        return 0


def memory_limit() -> int:
    """Return the bytes available to the process: the machine's memory or a lower limit."""
    limits = [os.sysconf("SC_PHYS_PAGES") * _PAGE]
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            limits.append(limit)
    try:
        limits.append(int(_GROUP_LIMIT.read_text()))
    except (OSError, ValueError):
        return min(limits)  # no control group, or "max": no limit
    return min(limits)
