"""A stream of a client's, in which it may have a transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iproto_server.protocol.constants import Key, RequestType
from tests.iproto_client import Answer, IprotoClient

CONFLICT = (97, "Transaction has been aborted by conflict")


class Stream:
    """One stream of a client's."""

    def __init__(self, client: IprotoClient, number: int = 1) -> None:
        self.client = client
        self.number = number

    def request(self, kind: int, body: Mapping[Any, Any] | None = None) -> Answer:
        return self.client.request(kind, body or {}, {Key.STREAM_ID: self.number})

    def send(self, kind: int, body: Mapping[Any, Any] | None = None) -> int:
        return self.client.send(kind, body or {}, {Key.STREAM_ID: self.number})

    def begin(self, **options: Any) -> Answer:
        return self.request(RequestType.BEGIN, {Key[name.upper()]: value for name, value in options.items()})

    def commit(self) -> Answer:
        return self.request(RequestType.COMMIT)

    def roll_back(self) -> Answer:
        return self.request(RequestType.ROLLBACK)

    def call(self, name: str, *arguments: Any) -> Answer:
        return self.request(RequestType.CALL, {Key.FUNCTION_NAME: name, Key.TUPLE: list(arguments)})

    def insert(self, space_id: int, row: list[Any]) -> Answer:
        return self.request(RequestType.INSERT, {Key.SPACE_ID: space_id, Key.TUPLE: row})

    def select(self, space_id: int) -> list[Any]:
        selection = {Key.SPACE_ID: space_id, Key.LIMIT: 100, Key.KEY: []}
        rows: list[Any] = self.request(RequestType.SELECT, selection).data
        return rows
