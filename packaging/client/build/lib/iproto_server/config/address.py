"""Network addresses in options: listen addresses, a Graphite receiver."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iproto_server.config.tls import TlsParameters

#: Size of `sockaddr_un.sun_path` on Linux, without the terminating zero byte.
_UNIX_PATH_MAX = 107

_EXPECTED = "expected PORT, HOST:PORT, [IPV6]:PORT or unix:PATH"


@dataclass(frozen=True, slots=True)
class Address:
    """A TCP address or a unix socket's path.

    Parameters:
        host: a host name, an IPv4 or an IPv6 address (without brackets); "" means every interface.
        port: the TCP port; 0 asks the system for a free one. Unused with a path.
        path: the path of a unix socket; "" for a TCP address.
        tls: TLS parameters; None: no encryption.
        mode: permissions of a unix socket's file; None: 0777 less the umask.
        descriptor: the listening socket that the service manager has passed for the address (see
            `socket_activation`); None: the server binds one itself.
    """

    host: str = ""
    port: int = 0
    path: str = ""
    tls: TlsParameters | None = None
    mode: int | None = None
    descriptor: int | None = None

    @classmethod
    def parse_listen(cls, text: str) -> Address:
        """Parse an address to listen on.

        After a `?` it may have parameters: those of `TlsParameters`, and for a unix socket `mode=0660`, the
        permissions of its file.

        Raises:
            ValueError: as for `parse`, or a parameter is invalid.
        """
        place, mark, query = text.partition("?")
        address = cls.parse(place)
        if not mark:
            return address
        parts = query.split("&")
        modes = [part for part in parts if part.partition("=")[0] == "mode"]
        others = [part for part in parts if part not in modes]
        try:
            if modes:
                address = replace(address, mode=_mode(address, modes))
            return replace(address, tls=_tls_parameters(others)) if others else address
        except ValueError as error:
            raise ValueError(f'"{place}": {error}') from None

    @classmethod
    def parse(cls, text: str) -> Address:
        """Parse an address in one of the forms of Tarantool's `listen` option.

        Parameters:
            text: `3301` or `*:3301` (every interface), `HOST:PORT`, `[::1]:3301`, `unix:PATH` or
                `unix/:PATH`.

        Returns:
            The address; names are not looked up.

        Raises:
            ValueError: the text has none of these forms; the message says so in one line.
        """
        unix = re.fullmatch(r"unix/?:(.*)", text, re.DOTALL)
        if unix:
            return cls(path=_unix_path(text, unix[1]))
        if re.fullmatch(r"[0-9]+", text):
            return cls(port=_port(text, text))
        bracketed = re.fullmatch(r"\[([^\]]*)\]:([^:]*)", text)
        if bracketed:
            try:
                ipaddress.IPv6Address(bracketed[1])
            except ValueError:
                raise ValueError(
                    f'"{text}" is not an address: [{bracketed[1]}] is not an IPv6 address'
                ) from None
            return cls(host=bracketed[1], port=_port(text, bracketed[2]))
        host, colon, port = text.rpartition(":")
        if not colon or not host:
            raise ValueError(f'"{text}" is not an address: {_EXPECTED}')
        if ":" in host:
            raise ValueError(
                f'"{text}" is not an address: an IPv6 address is written in brackets, [::1]:3301'
            )
        if re.search(r"[\s/@\[\],]", host):
            raise ValueError(f'"{text}" is not an address: {_EXPECTED}')
        return cls(host="" if host == "*" else host, port=_port(text, port))

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the address: a unix socket, `localhost` or a loopback address.

        Other names are not looked up and count as not local, because their addresses may change later.
        """
        if self.path:
            return True
        if self.host.lower() == "localhost":
            return True
        try:
            ip = ipaddress.ip_address(self.host)
        except ValueError:
            return False
        if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
            return ip.ipv4_mapped.is_loopback
        return ip.is_loopback

    def __str__(self) -> str:
        """The address without its parameters, in a form that `parse` reads back."""
        if self.path:
            return f"unix:{self.path}"
        if not self.host:
            return f"*:{self.port}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _tls_parameters(given: list[str]) -> TlsParameters | None:
    from iproto_server.config.tls import TlsParameters

    return TlsParameters.parse("&".join(given))


def _port(text: str, port: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise ValueError(f'"{text}" is not an address: the port must be a number from 0 to 65535')
    return int(port)


def _mode(address: Address, given: list[str]) -> int:
    """Return the permissions of a unix socket's file."""
    if not address.path:
        raise ValueError('the parameter "mode" is for unix sockets')
    if len(given) > 1:
        raise ValueError('the parameter "mode" is given twice')
    text = given[0].partition("=")[2]
    if not re.fullmatch(r"0?[0-7]{3}", text):
        raise ValueError(f'the mode "{text}" is not three octal digits, such as 0660')
    return int(text, 8)


def _unix_path(text: str, path: str) -> str:
    if not path or "\0" in path:
        raise ValueError(f'"{text}" is not an address: a unix socket needs a path, unix:PATH')
    if len(os.fsencode(path)) > _UNIX_PATH_MAX:
        raise ValueError(
            f'"{text}" is not an address: a unix socket\'s path has at most {_UNIX_PATH_MAX} bytes'
        )
    return path
