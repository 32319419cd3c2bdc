"""Limits of Lua code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LuaLimits:
    """What Lua code may take.

    Parameters:
        memory: maximum bytes of Lua's objects, beyond which code gets the error "not enough memory"; None: no
            limit.
        has_jit: whether LuaJIT compiles code to machine code.
        seconds: maximum time that Lua code runs without giving way to the event loop, beyond which it gets an
            error; None: no limit. It needs `has_jit` to be false, since compiled code is not interrupted.
    """

    memory: int | None = None
    has_jit: bool = True
    seconds: float | None = None
