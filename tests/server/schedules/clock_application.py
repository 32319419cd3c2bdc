"""A server whose wall clock is off: by CLOCK_OFFSET seconds at the start, and by more after each step."""

from __future__ import annotations

import os
import time

from iproto_server import Application, Box

app = Application("clock")

OFFSET = "CLOCK_OFFSET"
_offset = int(os.environ.get(OFFSET, "0"))


@app.setup
def set_clock(box: Box) -> None:
    box.clock.time_ns = lambda: time.time_ns() + _offset * 10**9  # type: ignore[method-assign]


@app.procedure("clock.step")
def step(box: Box, seconds: int) -> int:
    """Step the clock, and return its distance from the real one."""
    global _offset
    _offset += seconds
    return _offset
