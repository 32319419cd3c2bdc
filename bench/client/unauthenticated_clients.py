"""Attacks of clients that have not logged in: each runs until it is cancelled or the server disconnects it.

`HostileClient.done` counts what a client sees: "refused: NAME" is an error answer or a closed connection.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Final

from bench.client.hostile_clients import Attack, HostileClient
from bench.client.iproto_frames import frame
from bench.client.login import auth_frame

_GREETING: Final = 128
_RECEIVE: Final = 2**16
_PIECE: Final = bytes(2**16)
_MILLION: Final = 10**6
_HALF_FRAME: Final = 100 * _MILLION
_ARGUMENTS: Final = 19 * _MILLION
_AUTH_HEADER: Final = b"\x82\x00\x07\x01\x01"
_SLOW: Final = 0.5
"""Seconds between two bytes."""

_AHEAD: Final = 20
"""Wrong passwords that are sent without waiting for the answers."""


async def half_frame(client: HostileClient, one: socket.socket) -> None:
    """Announce 100 MB, send half of them, and wait."""
    await client.send(one, b"\xce" + _HALF_FRAME.to_bytes(4, "big"))
    for _ in range(_HALF_FRAME // 2 // len(_PIECE)):
        await client.send(one, _PIECE)
    await _see_refusal(client, one, "half frames of 100 MB")


async def large_auth(client: HostileClient, one: socket.socket) -> None:
    """Send an AUTH whose argument is an array of 19 million empty maps."""
    body = b"\x82\x23\xa1x\x21\xdd" + _ARGUMENTS.to_bytes(4, "big")
    size = len(_AUTH_HEADER) + len(body) + _ARGUMENTS
    await client.send(one, b"\xce" + size.to_bytes(4, "big") + _AUTH_HEADER + body)
    piece = b"\x80" * len(_PIECE)
    for _ in range(_ARGUMENTS // len(piece)):
        await client.send(one, piece)
    await client.send(one, piece[: _ARGUMENTS % len(piece)])
    await _see_refusal(client, one, "AUTH of 19 MB")


async def wrong_passwords(client: HostileClient, one: socket.socket) -> None:
    """Try passwords of existing and unknown users as fast as the server answers."""
    loop = asyncio.get_running_loop()
    greeting = b""
    while len(greeting) < _GREETING:
        data = await loop.sock_recv(one, _GREETING - len(greeting))
        if not data:
            client.done["refused: wrong passwords"] += 1
            return
        greeting += data
    tries = [
        auth_frame(greeting, user, f"guess {n}") for n in range(_AHEAD // 2) for user in ("admin", "eve")
    ]
    await client.send(one, b"".join(tries))
    rest = b""
    while data := await loop.sock_recv(one, _RECEIVE):
        rest += data
        answered = 0
        while len(rest) >= 5 and len(rest) >= (end := 5 + int.from_bytes(rest[1:5], "big")):
            rest = rest[end:]
            answered += 1
        client.done["refused: wrong passwords"] += answered
        await client.send(one, b"".join(tries[number % _AHEAD] for number in range(answered)))


async def slow_bytes(client: HostileClient, one: socket.socket) -> None:
    """Send a login byte by byte, never to its end."""
    whole = frame(_AUTH_HEADER + b"\x82\x23\xa1x\x21\xdc\x40\x00" + b"\x80" * 2**14)
    for byte in whole:
        await client.send(one, bytes((byte,)))
        await asyncio.sleep(_SLOW)
    await _see_refusal(client, one, "slow bytes")


async def silence(client: HostileClient, one: socket.socket) -> None:
    """Connect, and send nothing."""
    await _see_refusal(client, one, "silence")


async def _see_refusal(client: HostileClient, one: socket.socket, name: str) -> None:
    loop = asyncio.get_running_loop()
    try:
        while await loop.sock_recv(one, _RECEIVE):
            """Discard the greeting and an error."""
    finally:
        client.done[f"refused: {name}"] += 1


ATTACKS_BEFORE_LOGIN: Final[Mapping[str, Attack]] = {
    "half frames of 100 MB": half_frame,
    "AUTH of 19 MB": large_auth,
    "wrong passwords": wrong_passwords,
    "slow bytes": slow_bytes,
    "silence": silence,
}
"""Attacks before login, by name."""
