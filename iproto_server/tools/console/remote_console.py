"""The console of a server: the module `console` of its Lua, called with EVAL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import tarantool

from iproto_server.errors import ErrorCode
from iproto_server.tools.client import ClientError, ServerUri, connect, reason, timed_out

_EVAL: Final = "return require('console').eval(...)"

_EVAL_IF_COMPLETE: Final = """\
local text = ...
if text:sub(1, 1) ~= '\\\\' and not loadstring('return ' .. text) then
    local chunk, why = loadstring(text)
    if not chunk and why:sub(-12) == "near '<eof>'" then return false end
end
return require('console').eval(text)
"""

_COMPLETE: Final = """\
local handler = require('console').completion_handler
local found = handler and handler(...)
return type(found) == 'table' and {unpack(found, 2)} or {}
"""

_NO_CONSOLE: Final = frozenset(
    {ErrorCode.UNSUPPORTED, ErrorCode.UNKNOWN_REQUEST_TYPE, ErrorCode.PROC_LUA, ErrorCode.NO_SUCH_PROC}
)

OnPush = Callable[[object], None]


def _text(answer: object) -> str | None:
    """An answer, which is a text but for values that no console returns."""
    return None if answer is None else str(answer)


class RemoteConsole:
    """A connection to a server's console.

    Parameters:
        uri: the server.
        on_push: called with each value that `box.session.push` sends while a statement runs.

    Raises:
        ClientError: there is no connection to be had, or the user may not run statements.
    """

    def __init__(self, uri: ServerUri, on_push: OnPush) -> None:
        self.address = str(uri.address)
        self._uri = uri
        self._on_push = on_push
        self._connection = connect(uri)
        try:
            self._begin()
        except tarantool.DatabaseError as error:
            raise ClientError(self._refusal(error)) from error

    def _begin(self) -> None:
        """Begin a session, which in Tarantool 2.6 has the settings that any other client has left."""
        for command in ("\\set language lua", "\\set output yaml"):
            self._eval(_EVAL, command)

    def run(self, statement: str) -> str | None:
        """Run a statement.

        Returns:
            What the console shows; None if the statement ends it.

        Raises:
            ClientError: the connection has broken, or the server refuses the request.
        """
        return _text(self._shown(_EVAL, statement))

    def run_if_complete(self, statement: str) -> str | bool | None:
        """Run a statement unless it goes on in the next line.

        Returns:
            As `run`; False if it goes on.

        Raises:
            ClientError: as `run`.
        """
        answer = self._shown(_EVAL_IF_COMPLETE, statement)
        return False if answer is False else _text(answer)

    def complete(self, word: str, begin: int, end: int) -> list[str]:
        """Return what a word may become.

        Parameters:
            word: the word.
            begin, end: its place in the line.

        Raises:
            ClientError: as `run`.
        """
        found = self._shown(_COMPLETE, word, begin, end)
        return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []

    def reconnect(self) -> None:
        """Connect again, as after an answer that nobody waits for.

        Raises:
            ClientError: there is no connection to be had.
        """
        self.close()
        self._connection = connect(self._uri)
        self._shown(_EVAL, "\\set language lua")

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _shown(self, text: str, *arguments: object) -> Any:
        try:
            return self._eval(text, *arguments)
        except tarantool.DatabaseError as error:
            raise ClientError(self._refusal(error)) from error

    def _eval(self, text: str, *arguments: object) -> Any:
        try:
            values = self._connection.eval(
                text, *arguments, on_push=lambda pushed, _: self._on_push(pushed)
            ).data
        except tarantool.NetworkError as error:
            if timed_out(error):
                raise ClientError(
                    f"no answer from {self.address}: waited {self._uri.answer_timeout:g} s, and the statement"
                    " may be running nevertheless"
                ) from error
            raise ClientError(f"the connection to {self.address} has broken: {reason(error)}") from error
        except tarantool.DatabaseError:
            raise
        except (tarantool.Error, OSError, ValueError) as error:
            raise ClientError(f"the connection to {self.address} has broken: {reason(error)}") from error
        return values[0] if values else None

    def _refusal(self, error: tarantool.DatabaseError) -> str:
        code = error.args[0] if error.args else None
        if code == ErrorCode.ACCESS_DENIED:
            user = self._uri.user or "guest"
            return f"{self.address} refuses the statements of {user}: {reason(error)}"
        if code in _NO_CONSOLE:
            return f"{self.address} has no console: {reason(error)}"
        return f"{self.address} refuses the statement: {reason(error)}"
