"""The process's memory, as the system tells."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Final

_PAGE: Final = resource.getpagesize()
_STATUS: Final = Path("/proc/self/statm")
_GROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


def memory_used() -> int:
    """Bytes that the process has in memory now; where the system does not tell, the most it ever had."""
    try:
        return int(_STATUS.read_text().split()[1]) * _PAGE
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def memory_limit() -> int:
    """Bytes that the process can have: the machine's memory, or what it is limited to."""
    limits = [os.sysconf("SC_PHYS_PAGES") * _PAGE]
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            limits.append(limit)
    try:
        limits.append(int(_GROUP_LIMIT.read_text()))
    except (OSError, ValueError):
        return min(limits)  # no group, or "max", which is no limit
    return min(limits)
