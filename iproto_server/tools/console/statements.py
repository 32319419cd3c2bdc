"""What is typed in a console: its own commands, with a backslash, and statements for the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from iproto_server.tools.client import ClientError
from iproto_server.tools.console.answers import is_error
from iproto_server.tools.console.remote_console import RemoteConsole
from iproto_server.tools.console.screen import Screen

HELP: Final = """\
A line is a statement of Lua for the server, or an expression; an incomplete one goes on in the next line.

  \\set output table          lists of tuples are shown as tables
  \\set output yaml           answers are YAML
  \\set output lua[,block]    answers are Lua
  \\set language lua|sql      the language of statements
  \\set delimiter TEXT        statements end with TEXT; without it, with the line
  \\help                      this text
  \\quit                      the end, as Ctrl-D"""

_SHORT: Final = {"": "help", "h": "help", "q": "quit", "s": "set"}
_SHORT_PARAMETERS: Final = {
    "o": "output",
    "out": "output",
    "l": "language",
    "d": "delimiter",
    "delim": "delimiter",
}


class Statements:
    """The statements of a session.

    Parameters:
        console: the server's console.
        screen: where answers are shown.

    Attributes:
        has_ended: whether the session is to end.
    """

    def __init__(self, console: RemoteConsole, screen: Screen) -> None:
        self.has_ended = False
        self._console = console
        self._screen = screen
        self._delimiter = ""
        self._is_sql = False
        self._settings: dict[str, str] = {}
        self._is_connected = True

    def enter(self, text: str) -> bool:
        """Carry out what was entered, and show the answer.

        Parameters:
            text: one line, or several.

        Returns:
            False if the text is not complete: the next line belongs to it.
        """
        if text.startswith("\\"):
            self._command(text)
            return True
        if self._delimiter:
            if not text.endswith(self._delimiter):
                return False
            statement = text.removesuffix(self._delimiter)
            return self._run(lambda: self._console.run(statement))
        if self._is_sql:
            return self._run(lambda: self._console.run(text))
        return self._run(lambda: self._console.run_if_complete(text))

    def _command(self, text: str) -> None:
        name, *arguments = text[1:].split() or [""]
        name = _SHORT.get(name, name)
        if name == "quit":
            self.has_ended = True
        elif name == "help":
            self._screen.say(HELP)
        elif name == "set" and arguments:
            parameter = _SHORT_PARAMETERS.get(arguments[0], arguments[0])
            self._set(text, parameter, arguments[1] if len(arguments) > 1 else None)
        else:
            self._run(lambda: self._console.run(text))

    def _set(self, text: str, parameter: str, value: str | None) -> None:
        if parameter == "delimiter":
            self._delimiter = value or ""
            return
        wants_tables = parameter == "output" and value == "table"
        if wants_tables:
            text = "\\set output yaml"
        answer = self._ask(lambda: self._console.run(text))
        if not isinstance(answer, str):
            return
        if value is not None and not is_error(answer):
            self._settings[parameter] = text
            if parameter == "output":
                self._screen.has_tables = wants_tables
            elif parameter == "language":
                self._is_sql = value == "sql"
        if not wants_tables:
            self._screen.show(answer)

    def _run(self, ask: Callable[[], str | bool | None]) -> bool:
        answer = self._ask(ask)
        if isinstance(answer, str):
            self._screen.show(answer)
        return answer is not False

    def _ask(self, ask: Callable[[], str | bool | None]) -> str | bool | None:
        """Ask the server. Returns None if there is no answer, and reports why."""
        try:
            if not self._is_connected:
                self._connect_again()
            answer = ask()
        except ClientError as error:
            self._is_connected = False
            self._screen.complain(str(error))
            return None
        except KeyboardInterrupt:
            self._is_connected = False
            self._screen.complain("interrupted: the server may go on with the statement")
            return None
        if answer is None:
            self.has_ended = True
        return answer

    def _connect_again(self) -> None:
        self._console.reconnect()
        self._is_connected = True
        for text in self._settings.values():
            self._console.run(text)
