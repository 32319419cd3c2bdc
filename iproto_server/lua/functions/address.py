"""Addresses of sockets, for `internal.sockets.resolver`."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

_NUMERIC_HOST: Final = re.compile(rb"[\d.]+|[\da-fA-F:.]*:[\da-fA-F:.]*")
_NUMERIC_SERVICE: Final = re.compile(rb"\d*")


def address_of_number(
    host: bytes | None, service: bytes | None, family: int, kind: int, protocol: int, flags: int
) -> tuple[Any, ...] | None:
    """Find the addresses of a host that is a number.

    Parameters:
        host: None is the loopback address, or any with AI_PASSIVE.
        service: a number.
        family, kind, protocol, flags: as for getaddrinfo of the operating system.

    Returns:
        The values of the addresses, see `flat`; None if the host or the service is a name, which takes time.
    """
    if not _NUMERIC_HOST.fullmatch(host or b"::") or not _NUMERIC_SERVICE.fullmatch(service or b""):
        return None
    try:
        return tuple(flat(socket.getaddrinfo(host, service, family, kind, protocol, flags)))
    except (OSError, UnicodeError):
        return ()


def flat(found: list[Any]) -> list[Any]:
    """Return six values for each address: family, type, protocol, canonical name or None, host, and port."""
    values: list[Any] = []
    for family, kind, protocol, name, address in found:
        host, port = address[:2]
        canonical = name.encode() if name else None
        values += (int(family), int(kind), protocol, canonical, host.encode(), port)
    return values


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {"address_of_number": address_of_number}
