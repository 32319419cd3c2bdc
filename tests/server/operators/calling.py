"""Calls of operators' procedures, and the errors that they get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.iproto_client import IprotoClient

TUBES = "queue_lua_compat.tubes:app"
OPERATORS = "tests.server.operators.application:app"
Connect = Callable[[], IprotoClient]


def called(client: IprotoClient, name: str, *arguments: Any) -> Any:
    """Return the one value that a procedure for operators returns."""
    [value] = client.call(f"operator.{name}", *arguments).data
    return value


def refused(client: IprotoClient, name: str, *arguments: Any) -> str:
    """Return the text of the error of a procedure for operators."""
    return client.call(f"operator.{name}", *arguments).failure[1]
