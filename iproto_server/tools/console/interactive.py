"""A console of a server on the terminal."""

from __future__ import annotations

import asyncio
from pathlib import Path

from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers import LuaLexer

from iproto_server.terminal.line_editor import LineEditor
from iproto_server.terminal.line_history import LineHistory
from iproto_server.tools.client import ClientError, ServerUri
from iproto_server.tools.console.remote_console import RemoteConsole
from iproto_server.tools.console.screen import Screen
from iproto_server.tools.console.statements import Statements

_HISTORY = ".iproto_server_history"


def _history_path() -> Path | None:
    try:
        return Path.home() / _HISTORY
    except RuntimeError:  # there is no home directory
        return None


def interact(uri: ServerUri) -> None:
    """Run statements that are typed, until `\\quit` or Ctrl-D.

    Parameters:
        uri: the server.

    Raises:
        ClientError: there is no connection to be had, or the user may not run statements.
    """
    screen = Screen()
    console = RemoteConsole(uri, screen.show_pushed)
    screen.say(f"connected to {console.address}")
    history = LineHistory(_history_path())

    async def complete(word: str, begin: int, end: int) -> list[str]:
        try:
            return console.complete(word, begin, end)
        except ClientError:  # the next statement reports it
            return []

    editor = LineEditor(history, complete, PygmentsLexer(LuaLexer))
    try:
        _read_statements(Statements(console, screen), editor, history, console.address)
    finally:
        editor.close()
        console.close()


def _read_statements(statements: Statements, editor: LineEditor, history: LineHistory, address: str) -> None:
    first_prompt, next_prompt = f"{address}> ", f"{'':{len(address)}}> "
    lines: list[str] = []
    while not statements.has_ended:
        try:
            line = asyncio.run(editor.read(next_prompt if lines else first_prompt))
        except KeyboardInterrupt:  # what was typed is dropped
            lines = []
            continue
        except EOFError:
            return
        history.remember(line)
        lines.append(line)
        if statements.enter("\n".join(lines)):
            lines = []
