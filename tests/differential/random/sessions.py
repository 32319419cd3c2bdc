"""Connections to one server, one per user, with many requests in flight."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from tests.differential.random.answer import Answer, Closed, Reply
from tests.differential.random.application import PASSWORD
from tests.differential.random.request import GUEST, Request
from tests.iproto_client import AUTH, PING, TUPLE, USER_NAME, IprotoClient

_LAST: Final = 2**62
"""The sync of the PING that ends a batch."""


class Sessions:
    """The connections to a server.

    Parameters:
        host: Its address.
        port: Its port.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._clients: dict[str, IprotoClient] = {}

    def send(self, user: str, requests: Sequence[Request]) -> None:
        """Send requests of one user, numbered from 1."""
        client = self._client(user)
        frames = [request.packed(sync) for sync, request in enumerate(requests, start=1)]
        frames.append(Request(PING).packed(_LAST))
        data = b"".join(b"\xce" + len(frame).to_bytes(4, "big") + frame for frame in frames)
        try:
            client.send_bytes(data)
        except ConnectionError:
            # its earlier answers can still be read
            return

    def receive(self, user: str) -> list[Reply]:
        """Receive the answers to all requests of a user."""
        client = self._client(user)
        replies: list[Reply] = []
        while True:
            try:
                answer = Answer.read(client.receive_frame())
            except ConnectionError:
                self.close(user)
                return [*replies, Closed()]
            except TimeoutError:
                self.close(user)
                return [*replies, Closed("there is no answer")]
            replies.append(answer)
            if answer.sync == _LAST:
                return replies

    def ask(self, requests: Sequence[Request], user: str = GUEST) -> list[Reply]:
        """Send requests of one user and receive the answers, and that to the PING at the end."""
        self.send(user, requests)
        return self.receive(user)

    def ask_one(self, request: Request) -> Answer:
        """Send a request that may be overtaken by others, and receive its answer."""
        client = self._client(request.user)
        frame = request.packed(_LAST)
        client.send_bytes(b"\xce" + len(frame).to_bytes(4, "big") + frame)
        return Answer.read(client.receive_frame())

    def close(self, user: str) -> None:
        """Close a user's connection; the next request opens another."""
        self._clients.pop(user).close()

    def close_all(self) -> None:
        """Close all connections."""
        for user in list(self._clients):
            self.close(user)

    def _client(self, user: str) -> IprotoClient:
        client = self._clients.get(user)
        if client is None:
            client = IprotoClient(self._host, self._port)
            self._clients[user] = client
            if user != GUEST:
                answer = client.request(AUTH, {USER_NAME: user, TUPLE: ["chap-sha1", _scramble(client)]})
                assert answer.ok, f"{user} cannot log in: {answer.error}"
        return client


def _scramble(client: IprotoClient) -> bytes:
    once = hashlib.sha1(PASSWORD.encode()).digest()
    salted = hashlib.sha1(client.salt[:20] + hashlib.sha1(once).digest()).digest()
    return bytes(left ^ right for left, right in zip(once, salted, strict=True))
