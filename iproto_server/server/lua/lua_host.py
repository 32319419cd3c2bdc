"""The LuaJIT of a server: attached to its box, and called by its clients."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from iproto_server.app import Procedure
from iproto_server.box import Box, Waiter
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.lua.fibers import FiberRuntime
from iproto_server.native._native import LuaProcedure, lua_attach, lua_detach
from iproto_server.server.lua.box_functions import BoxFunctions
from iproto_server.server.requests.call import Calls

logger = logging.getLogger("iproto_server.lua")

Function = Callable[..., Any]


class LuaHost:
    """Lua code that uses a box.

    Parameters:
        runtime: the LuaJIT, which has the module `internal.box.load`.
    """

    def __init__(self, runtime: FiberRuntime) -> None:
        self._runtime = runtime
        self._waiters: dict[int, Waiter] = {}
        self._box: Box | None = None

    def attach(self, box: Box) -> None:
        """Let Lua code use a box.

        Parameters:
            box: the database, which is recovered.
        """
        self._box = box
        self._functions = BoxFunctions(box)
        lua_attach(box, self._functions.ask, self._finished)
        self._runtime.require("internal.box.hooks")
        box.run_lua = self._evaluate

    def detach(self) -> None:
        """Let Lua code use the box no more, since the server has stopped."""
        if self._box is not None:
            self._box.run_lua = None
            self._functions.remove_hooks()
            lua_detach()
            self._box = None

    def serve(self, calls: Calls) -> None:
        """Let clients call functions of Lua, and evaluate texts."""
        calls.lua_procedure = self.procedure
        calls.evaluate = LuaProcedure(None, self._waits)

    # -- calls --

    def procedure(self, name: str) -> Procedure | None:
        """Return a procedure that calls the function of Lua of that name; None if there is none.

        Parameters:
            name: such as "queue.put" or "box.space.tasks:select".
        """
        exists: Function = self._runtime.require("internal.box.calls")[b"exists"]
        if not self._runtime.call(exists, name.encode("utf-8", "surrogateescape")):
            return None
        return Procedure(name, LuaProcedure(name, self._waits), is_async=False, is_autonomous=True)

    def _evaluate(self, text: str, arguments: tuple[object, ...]) -> list[Any]:
        """Run a text for code of Python that waits for it; see `Box.evaluate_lua`."""
        evaluate: Function = self._runtime.require("internal.box.calls")[b"evaluate_at_once"]
        try:
            answer = self._runtime.call(evaluate, text.encode(), codec.pack(arguments))
        except RuntimeError as error:
            raise BoxError.procedure(str(error)) from error
        if not isinstance(answer, tuple):
            results: list[Any] = codec.unpack(answer)
            return results
        code, message = answer
        raise BoxError.with_message(int(code), message.decode("utf-8", "surrogateescape"))

    def _waits(self, number: int) -> Waiter:
        """Return the waiter of a call whose fiber waits."""
        assert self._box is not None
        waiter = self._waiters[number] = Waiter(self._box.session.current, None)
        return waiter

    def wait_for_box(self, answer: Function, name: bytes) -> None:
        """Call a function of the box that waits, and answer Lua's fiber at its end."""

        def done(waiter: Waiter) -> None:
            error = waiter.error
            if error is None:
                answer(True, True, str(waiter.result).encode())
            elif isinstance(error, BoxError):
                answer(True, False, error.code, error.message.encode("utf-8", "surrogateescape"))
            else:
                answer(True, False, int(ErrorCode.PROC_LUA), str(error).encode())

        try:
            result = self._functions.ask(name.decode(), [])
        except BoxError as error:
            answer(True, False, error.code, error.message.encode("utf-8", "surrogateescape"))
        else:
            assert isinstance(result, Waiter)
            result.on_done(done)

    def _finished(self, number: int, result: object, error: BaseException | None) -> None:
        """A call that has waited has ended; it is answered when what it has changed is written."""
        waiter = self._waiters.pop(number, None)
        if waiter is None:
            return
        assert self._box is not None
        self._box.when_written(lambda: waiter.finish(result, error))
