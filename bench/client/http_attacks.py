"""Attacks over HTTP by clients that have not logged in: each runs until the server disconnects it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping
from typing import Final

from bench.client.hostile_clients import Attack, HostileClient

_RECEIVE: Final = 2**16
_SLOW: Final = 0.5
"""Seconds between two bytes."""
_PATIENCE: Final = 5.0
"""Seconds that a client waits for a response."""
_CHUNKS: Final = b"1\r\n \r\n" * 40_000
_LOGIN: Final = b"POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


async def one_byte_chunks(client: HostileClient, one: socket.socket) -> None:
    """Send a body of 240 KB in chunks of one byte."""
    await client.send(one, _LOGIN + b"Transfer-Encoding: chunked\r\n\r\n" + _CHUNKS)
    await _read(client, one, "one-byte chunks")


async def cut_body(client: HostileClient, one: socket.socket) -> None:
    """Announce a body, send one byte of it, and disconnect."""
    await client.send(one, _LOGIN + b"Content-Length: 9\r\n\r\n{")
    client.done["cut bodies"] += 1


async def lone_surrogate(client: HostileClient, one: socket.socket) -> None:
    """Log in with a password that is no text."""
    await _log_in(client, one, '{"user": "u", "password": "\\ud800"}')


async def wrong_password(client: HostileClient, one: socket.socket) -> None:
    """Log in with random names and passwords."""
    credentials = {"user": f"u{client.done['logins']}", "password": "guess"}
    await _log_in(client, one, json.dumps(credentials))


async def slow_headers(client: HostileClient, one: socket.socket) -> None:
    """Send a request's headers byte by byte."""
    while True:
        for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Header: ":
            await client.send(one, bytes((byte,)))
            await asyncio.sleep(_SLOW)


async def large_headers(client: HostileClient, one: socket.socket) -> None:
    """Send headers without an end."""
    await client.send(one, b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-Header: 1\r\n" * 20_000)
    await _read(client, one, "large headers")


async def silence(client: HostileClient, one: socket.socket) -> None:
    """Connect, and send nothing."""
    await _read(client, one, "silent clients")


async def _log_in(client: HostileClient, one: socket.socket, body: str) -> None:
    head = _LOGIN + f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
    await client.send(one, head + body.encode())
    client.done["logins"] += 1
    await _read(client, one, "logins")


async def _read(client: HostileClient, one: socket.socket, what: str) -> None:
    """Read until the server closes the connection, and count the status of its response."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_PATIENCE):
            answer = await loop.sock_recv(one, _RECEIVE)
            client.done[f"{what}: {answer[9:12].decode('latin-1') or 'closed'}"] += 1
            while answer:
                answer = await loop.sock_recv(one, _RECEIVE)
    except TimeoutError:
        client.done[f"{what}: no response"] += 1


ATTACKS_OVER_HTTP: Final[Mapping[str, Attack]] = {
    "one-byte chunks": one_byte_chunks,
    "cut bodies": cut_body,
    "lone surrogates": lone_surrogate,
    "wrong passwords": wrong_password,
    "slow headers": slow_headers,
    "large headers": large_headers,
    "silence": silence,
}
"""The attacks by name."""
