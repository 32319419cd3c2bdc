"""Fibers of Lua on an event loop of asyncio."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from iproto_server.lua.limits import LuaLimits
from iproto_server.lua.network import Network
from iproto_server.lua.runtime import Function, Runtime
from iproto_server.lua.terminal import Terminal

if TYPE_CHECKING:
    import asyncio


class FiberRuntime(Runtime):
    """A LuaJIT with fibers, which run on an event loop.

    Parameters:
        loop: the event loop.
        functions: more functions of Python for modules, see `Runtime`.
        limits: limits of Lua code.

    Raises:
        LuaIsMissing: LuaJIT is not installed.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        functions: Mapping[str, Function] = {},
        limits: LuaLimits | None = None,
    ) -> None:
        from iproto_server.native._native import lua_begin, lua_end

        self._begin_run, self._end_run = lua_begin, lua_end
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        own: dict[str, Function] = {
            "schedule": self._schedule,
            "set_timer": self._set_timer,
            **Network(loop, self.call).functions,
            **Terminal(loop, self.call).functions,
        }
        super().__init__({**own, **functions})
        scheduler = self.require("internal.fibers.scheduler")
        self._run_ready: Function = scheduler[b"run_ready"]
        self._run_timers: Function = scheduler[b"run_timers"]
        self._new: Function = scheduler[b"new"]
        for module in ("internal.fibers.coroutines", "internal.fibers.loading"):
            self.require(module)
        if limits is not None:
            set_limits = self.require("internal.limits")[b"set"]
            self.call(set_limits, limits.memory, limits.has_jit, limits.seconds)

    def start(self, function: Function, done: Callable[..., None]) -> None:
        """Run a function of Lua in a fiber of its own.

        Parameters:
            function: the function.
            done: called at its end with True and its results, or with False and its error.
        """
        fiber = self.call(self._new, function)
        fiber[b"on_end"] = lambda _, ok, *values: done(bool(ok), *values)

    # -- what the scheduler calls --

    def _schedule(self) -> None:
        self._loop.call_soon(self._run, self._run_ready)

    def _set_timer(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self._run, self._run_timers)

    def _run(self, function: Function) -> None:
        """Call a function of the scheduler, as a run of Lua code that limits and the watchdog know."""
        self._begin_run()
        try:
            self.call(function)
        finally:
            self._end_run()


async def run(runtime: FiberRuntime, function: Function) -> Any:
    """Run a function of Lua in a fiber, and wait for its end.

    Returns:
        A tuple of its results.

    Raises:
        RuntimeError: it has ended with an error, whose text is in Lua's words.
    """
    import asyncio

    ended: asyncio.Future[tuple[Any, ...]] = asyncio.get_running_loop().create_future()

    def done(ok: bool, *values: Any) -> None:
        if ended.cancelled():
            return
        if ok:
            ended.set_result(values)
        else:
            ended.set_exception(RuntimeError(runtime.text(values[0] if values else None)))

    runtime.start(function, done)
    return await ended
