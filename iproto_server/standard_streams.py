"""Descriptors 0, 1 and 2, which must not become something else's when a process is started without them."""

from __future__ import annotations

import os
import sys
from typing import Final

_LAST: Final = 2


def open_standard_streams() -> None:
    """Open `/dev/null` in the place of each standard stream that is closed.

    Otherwise the next file or socket has its number: libuv aborts when it closes that, and what a library
    writes to descriptor 2 ends up in there.
    """
    descriptor = os.open(os.devnull, os.O_RDWR)
    while descriptor <= _LAST:
        os.set_inheritable(descriptor, True)
        descriptor = os.open(os.devnull, os.O_RDWR)
    os.close(descriptor)
    # Python has None for those that were closed when it started.
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # as long as the process
    if sys.stderr is None:
        sys.stderr = open(_LAST, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
