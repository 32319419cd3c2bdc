"""Connections of the commands to a server, this one or Tarantool."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Self
from urllib.parse import unquote

import tarantool

from iproto_server.codec import msgpack as codec
from iproto_server.config.address import Address
from iproto_server.errors import BoxError, ErrorCode

CONNECT_TIMEOUT = 10.0
"""Seconds until a command has a connection and is logged in."""
ANSWER_TIMEOUT = 60.0
"""Seconds until an answer comes."""

_SCHEME: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]*://")
_LOGIN_ERRORS: Final = frozenset(
    {
        ErrorCode.CREDS_MISMATCH,
        ErrorCode.PASSWORD_MISMATCH,
        ErrorCode.NO_SUCH_USER,
        ErrorCode.ACCESS_DENIED,
    }
)
_GREETING: Final = "the greeting"

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
        timeout: the time in seconds for the connection, and for each answer; None: `CONNECT_TIMEOUT` and
            `ANSWER_TIMEOUT`.
    """

    address: Address
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float | None = None

    @property
    def answer_timeout(self) -> float:
        """Seconds until an answer comes."""
        return ANSWER_TIMEOUT if self.timeout is None else self.timeout

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `[USER[:PASSWORD]@]ADDRESS[?PARAMETERS]`.

        The address is PORT, HOST:PORT, [IPV6]:PORT or unix:PATH. The parameters are those of the connectors
        for TLS: `transport=ssl&ssl_ca_file=ca.crt`, joined by `&`, with characters encoded as `%XX`.

        Raises:
            ValueError: it is none; the message says why in one line, without the password.
        """
        scheme = _SCHEME.match(text)
        if scheme is not None:
            raise ValueError(
                f"an address has no {scheme[0]}: give HOST:PORT or unix:PATH, as in the server's --listen"
            )
        if not text:
            raise ValueError("the address is empty: give HOST:PORT or unix:PATH, as in the server's --listen")
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
    """The client's packer: packed values go in as they are."""

    def pack(self, value: object) -> bytes:
        return codec.pack(value)


class _Unpacker:
    """The client's unpacker; it gets one answer: header, then body.

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


class _Connection(tarantool.Connection):  # type: ignore[misc]  # the library has no types
    """The connector's connection, which knows what it waits for, and until when it may take to log in."""

    _step = "a connection"
    _has_taken_too_long = False

    @property
    def waits_for(self) -> str:
        """What it waits for."""
        if self._step == _GREETING and self.version_id is not None:
            return "an answer to the first request"
        return self._step

    def connect_within(self, seconds: float) -> None:
        """Connect and log in. Raises tarantool.Error; TimeoutError when the time is over."""
        timer = threading.Timer(seconds, self._give_up)
        timer.daemon = True
        timer.start()
        try:
            self.connect()
        except Exception as error:
            if self._has_taken_too_long or isinstance(_cause(error), TimeoutError):
                raise TimeoutError(f"waited {seconds:g} s for {self.waits_for}") from None
            raise
        finally:
            timer.cancel()

    def wait_for_answers(self, seconds: float) -> None:
        """Set the time for each answer."""
        self.socket_timeout = seconds
        self._socket.settimeout(seconds)

    def connect_basic(self) -> None:
        super().connect_basic()
        self._step = _GREETING

    def authenticate(self, user: str, password: str | None) -> Any:
        self._step = "the answer to the login"
        return super().authenticate(user, password)

    def _give_up(self) -> None:
        self._has_taken_too_long = True
        with suppress(OSError, AttributeError):  # There is no connection, or it has just ended.
            self._socket.shutdown(socket.SHUT_RDWR)


def connect(uri: ServerUri, needs_schema: bool = False) -> Any:
    """Connect to a server, and return the connector's connection.

    A connection that breaks is not opened again: what has arrived must never be in doubt.

    Parameters:
        uri: the server.
        needs_schema: whether the connector loads the definitions of spaces, which requests for rows need.

    Raises:
        ClientError: there is no connection to be had.
    """
    address = uri.address
    seconds = CONNECT_TIMEOUT if uri.timeout is None else uri.timeout
    connection: _Connection | None = None
    try:
        connection = _Connection(
            None if address.path else address.host or "localhost",
            address.path or address.port,
            user=uri.user,
            password=uri.password,
            connection_timeout=seconds,
            socket_timeout=seconds,
            reconnect_max_attempts=0,
            connect_now=False,
            fetch_schema=needs_schema,
            packer_factory=lambda connection: _Packer(),
            unpacker_factory=lambda connection: _Unpacker(),
            **uri.tls,
        )
        connection.connect_within(seconds)
        connection.wait_for_answers(uri.answer_timeout)
    except TimeoutError as error:
        raise ClientError(f"no answer from {address}: {error}{_hint(connection)}") from None
    except (tarantool.Error, ValueError) as error:
        cause = _cause(error)
        if isinstance(cause, tarantool.DatabaseError) and cause.args and cause.args[0] in _LOGIN_ERRORS:
            who = f"user {uri.user}" if uri.user else "guest"
            raise ClientError(f"{address} refuses the login of {who}: {reason(error)}") from error
        raise ClientError(f"cannot connect to {address}: {reason(error)}{_hint(connection)}") from error
    return connection


def _hint(connection: _Connection | None) -> str:
    """Return the end of a message if something else than a server seems to listen."""
    if connection is None or connection.waits_for != _GREETING:
        return ""
    return "; is this the address of --listen, and not of --http or --metrics-listen?"


def _cause(error: BaseException) -> BaseException:
    """Return the first cause of an error."""
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    return error


def timed_out(error: BaseException) -> bool:
    """Whether an answer has not come in time."""
    return isinstance(_cause(error), TimeoutError)


def reason(error: BaseException) -> str:
    """The error behind another one; the client wraps the errors of the network and the server in its own."""
    error = _cause(error)
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, ValueError | LookupError | BoxError):
        return "the program that answers there is no Tarantool"
    if isinstance(error, tarantool.DatabaseError) and len(error.args) > 1:
        return str(error.args[1])
    return str(error)
