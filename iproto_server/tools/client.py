"""Connections of the commands to a server, this one or Tarantool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self
from urllib.parse import unquote

import tarantool

from iproto_server.codec import msgpack as codec
from iproto_server.config.address import Address
from iproto_server.errors import BoxError

CONNECT_TIMEOUT = 10.0
ANSWER_TIMEOUT = 60.0
"""How long the server may take for its part, in seconds."""

_TLS_PARAMETERS: Final = (
    *("transport", "ssl_ca_file", "ssl_key_file", "ssl_cert_file"),
    *("ssl_ciphers", "ssl_password", "ssl_password_file"),
)


class ClientError(Exception):
    """There is no connection to be had; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class ServerUri:
    """Where a server is, and who wants in.

    Parameters:
        address: where it listens.
        user: None for guest.
        password: the user's.
        tls: the parameters of the connector for TLS; empty without.
    """

    address: Address
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `[USER[:PASSWORD]@]ADDRESS[?PARAMETERS]`.

        The address is PORT, HOST:PORT, [IPV6]:PORT or unix:PATH. The parameters are those of the connectors
        for TLS: `transport=ssl&ssl_ca_file=ca.crt`, joined by `&`, with characters encoded as `%XX`.

        Raises:
            ValueError: it is none; the message says why in one line, without the password.
        """
        credentials, at, place = text.rpartition("@")
        user, colon, password = credentials.partition(":")
        if at and not user:
            raise ValueError("there is no user before the @")
        address, mark, query = place.partition("?")
        parsed = Address.parse(address)
        if not parsed.path and not parsed.port:
            raise ValueError(f'"{address}" is not an address to connect to: the port is 0')
        return cls(parsed, user or None, password if colon else None, _tls_of(query) if mark else {})


def _tls_of(query: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if name not in _TLS_PARAMETERS:
            raise ValueError(f'there is no parameter "{name}"')
        if not value or name in given:
            raise ValueError(f'the parameter "{name}" is given {"twice" if value else "without a value"}')
        given[name] = unquote(value)
    transport = given.get("transport", "plain")
    if transport == "plain" and len(given) > ("transport" in given):
        raise ValueError("the parameters for TLS need transport=ssl")
    if transport not in ("plain", "ssl"):
        raise ValueError(f'the transport "{transport}" is neither plain nor ssl')
    return given if transport == "ssl" else {}


class _Packer:
    """What the client packs with: packed values go in as they are."""

    def pack(self, value: object) -> bytes:
        return codec.pack(value)


class _Unpacker:
    """What the client unpacks answers with, of which it feeds and unpacks one: header, then body.

    Answers repeat rows, and the library's own unpacker does not take every key and extension type.
    """

    def __init__(self) -> None:
        self._data = b""

    def feed(self, data: bytes) -> None:
        self._data = data

    def unpack(self) -> Any:
        if not self._data:
            return {}
        end = codec.skip(self._data, 0)
        value, self._data = codec.unpack(self._data[:end]), self._data[end:]
        return value


def connect(uri: ServerUri) -> Any:
    """Connect to a server, and return the connector's connection.

    A connection that breaks is not opened again: what has arrived must never be in doubt.

    Raises:
        ClientError: there is no connection to be had.
    """
    address = uri.address
    try:
        return tarantool.Connection(
            None if address.path else address.host or "localhost",
            address.path or address.port,
            user=uri.user,
            password=uri.password,
            connection_timeout=CONNECT_TIMEOUT,
            socket_timeout=ANSWER_TIMEOUT,
            reconnect_max_attempts=0,
            packer_factory=lambda connection: _Packer(),
            unpacker_factory=lambda connection: _Unpacker(),
            **uri.tls,
        )
    except (tarantool.Error, ValueError) as error:
        raise ClientError(f"cannot connect to {address}: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """What went wrong; the client wraps the errors of the network and the server in its own."""
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, ValueError | LookupError | BoxError):
        return "what answers there is no Tarantool"
    if isinstance(error, tarantool.DatabaseError) and len(error.args) > 1:
        return str(error.args[1])
    return str(error)
