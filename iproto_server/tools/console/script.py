"""Statements from a file or a pipe, for a server."""

from __future__ import annotations

import json
from typing import BinaryIO

import click

from iproto_server.tools.client import ServerUri
from iproto_server.tools.command_line import complain
from iproto_server.tools.console.answers import is_error, values_of
from iproto_server.tools.console.remote_console import RemoteConsole
from iproto_server.tools.console.screen import line_ended, pushed_line
from iproto_server.tools.console.tables import as_tables


def run_script(uri: ServerUri, stream: BinaryIO) -> int:
    """Run the statement in a stream, and print the answer.

    Lines at its beginning that begin with a backslash are commands; all that follows is one statement.

    Parameters:
        uri: the server.
        stream: the text; bytes that are no UTF-8 are replaced.

    Returns:
        The exit status: 1 if a command or the statement has failed.

    Raises:
        ClientError: there is no connection to be had, or it has broken.
    """
    console = RemoteConsole(uri, lambda pushed: complain(pushed_line(pushed)))
    try:
        return _run(console, stream.read().decode("utf-8", "replace"))
    finally:
        console.close()


def _run(console: RemoteConsole, text: str) -> int:
    has_tables = is_sql = False
    while text.startswith("\\"):
        command, _, text = text.partition("\n")
        words = command.split()
        wants_tables = words[1:] == ["output", "table"]
        answer = console.run("\\set output yaml" if wants_tables else command)
        if answer is None:
            return 0
        if is_error(answer):
            return _fail(_error_of(answer))
        if words[1:2] == ["output"]:
            has_tables = wants_tables
        elif words[1:2] == ["language"]:
            is_sql = words[2:] == ["sql"]
    if not text.strip():
        return 0
    answer = console.run(text)
    if answer is None:
        return 0
    if is_error(answer):
        return _fail(_error_of(answer))
    if is_sql and (refusal := _sql_error_of(answer)):
        return _fail(refusal)
    click.echo(line_ended(as_tables(answer) if has_tables else answer), nl=False)
    return 0


def _fail(reason: str) -> int:
    complain(reason)
    return 1


def _sql_error_of(answer: str) -> str | None:
    """The error of a statement of SQL, which the console shows as null and a text; None if there is none."""
    values = values_of(answer)
    if values and len(values) == 2 and values[0] == "null" and isinstance(values[1], str):
        return values[1]
    return None


def _error_of(answer: str) -> str:
    """The error of an answer, without what is around it."""
    values = values_of(answer)
    if not values:
        return answer
    error = values[0]["error"]
    return error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)
