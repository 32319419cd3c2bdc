"""AUTH by chap-sha1, as clients send it."""

from __future__ import annotations

from iproto_server.protocol import auth
from iproto_server.protocol.constants import Key, RequestType
from tests.iproto_client import Answer, IprotoClient, frame


def auth_frame(client: IprotoClient, user: str, password: str, *, sync: int = 0) -> bytes:
    """The request that logs a client's session in, as it goes over the wire."""
    proof = ["chap-sha1", auth.scramble(password, client.salt)]
    return frame(RequestType.AUTH, {Key.USER_NAME: user, Key.TUPLE: proof}, sync=sync)


def log_in(client: IprotoClient, user: str, password: str) -> Answer:
    """Log a client's session in, and return the answer."""
    client.send_bytes(auth_frame(client, user, password))
    return client.receive()
