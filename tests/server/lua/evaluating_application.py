"""Procedures in Python that run Lua code."""

from __future__ import annotations

from typing import Any

from iproto_server import Application, Box, BoxError

app = Application("evaluating")


@app.procedure("evaluate")
def evaluate(box: Box, text: str, *arguments: object) -> list[Any]:
    return box.evaluate_lua(text, *arguments)


@app.procedure("insert_and_fail")
def insert_and_fail(box: Box) -> None:
    box.evaluate_lua("box.space.rows:insert{1}")
    raise BoxError.procedure("undone")


@app.procedure("handle")
def handle(box: Box, text: str) -> str:
    try:
        box.evaluate_lua(text)
    except BoxError as error:
        return error.message
    return "no error"
