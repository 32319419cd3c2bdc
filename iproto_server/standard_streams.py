"""Keeps descriptors 0, 1 and 2 from being reused in a process that was started without them."""

from __future__ import annotations

import os
import sys
from typing import Final

_LAST: Final = 2


def open_standard_streams() -> None:
    """Open `/dev/null` in place of each closed standard stream.

    Otherwise the next file or socket gets its number: libuv aborts when it closes that one, and libraries
    write to descriptor 2.
    """
    descriptor = os.open(os.devnull, os.O_RDWR)
    while descriptor <= _LAST:
        os.set_inheritable(descriptor, True)
        descriptor = os.open(os.devnull, os.O_RDWR)
    os.close(descriptor)
    # In Python, a stream that was closed at the start is None.
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # as long as the process
    if sys.stderr is None:
        sys.stderr = open(_LAST, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
