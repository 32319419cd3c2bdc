"""Answers of a console on the terminal: with colours, and page by page if they are long."""

from __future__ import annotations

import os
import shutil
import sys

import click
from pygments import highlight
from pygments.formatters import TerminalFormatter
from pygments.lexers import LuaLexer, YamlLexer

from iproto_server.tools.console.answers import is_error
from iproto_server.tools.console.tables import as_tables
from iproto_server.tools.files.json_record import json_text


def line_ended(text: str) -> str:
    """Return a text that ends with a line break."""
    return text if text.endswith("\n") else f"{text}\n"


def pushed_line(value: object) -> str:
    """Return a pushed value in a line; each message is a list of values."""
    values = value if isinstance(value, list) else [value]
    return "pushed: " + ", ".join(json_text(each) for each in values)


def _has_colours() -> bool:
    """Whether the terminal shows colours, and the user wants them (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Screen:
    """The terminal.

    Attributes:
        has_tables: whether lists of tuples are shown as tables.
    """

    def __init__(self) -> None:
        self.has_tables = False
        self._has_colours = _has_colours()

    def show(self, answer: str) -> None:
        """Show an answer."""
        text = line_ended(self._dressed(answer))
        if text.count("\n") < shutil.get_terminal_size().lines:
            click.echo(text, nl=answer.startswith("---") and not self.has_tables, color=self._has_colours)
        else:
            click.echo_via_pager(text, color=self._has_colours)

    def say(self, text: str) -> None:
        """Show a line of the console's own."""
        click.echo(text)

    def show_pushed(self, value: object) -> None:
        """Show a value that the server has pushed."""
        click.echo(pushed_line(value))

    def complain(self, text: str) -> None:
        """Show an error, in one line."""
        line = " ".join(text.split())
        click.echo(click.style(line, fg="red") if self._has_colours else line, color=self._has_colours)

    def _dressed(self, answer: str) -> str:
        if is_error(answer):
            return click.style(answer, fg="red") if self._has_colours else answer
        if self.has_tables:
            shown = as_tables(answer)
            if shown != answer:
                return shown
        if not self._has_colours:
            return answer
        lexer = YamlLexer() if answer.startswith("---") else LuaLexer()
        return str(highlight(answer, lexer, TerminalFormatter()))
