"""Listening sockets that the service manager has bound and passes to the server.

A socket's name says what is served there. It replaces the addresses of that option, unless the option is
given.

Source: sd_listen_fds(3); systemd.socket(5), `FileDescriptorName=`.
"""

from __future__ import annotations

import errno
import os
import re
import socket
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Final

from iproto_server.config.address import Address

OPTION_OF: Final = {
    "iproto": "listen",
    "iproto-1.5": "listen_1_5",
    "http": "http",
    "metrics": "metrics_listen",
}
"""The names of passed sockets, with the options that they replace."""

FIRST_DESCRIPTOR: Final = 3
"""The first passed descriptor; the others follow it. Source: sd_listen_fds(3), `SD_LISTEN_FDS_START`."""

VARIABLES: Final = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")

_SINGLE: Final = ("http", "metrics_listen")
"""The options with one address."""

_MOST: Final = 2**31 - 1 - FIRST_DESCRIPTOR
_FAMILIES: Final = (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)


@dataclass(frozen=True, slots=True)
class UnusedSocket:
    """A passed socket that an option has replaced.

    Parameters:
        name: its name, one of OPTION_OF.
        address: its address.
        origin: where the option was given: a flag, a variable or a key of a file.
    """

    name: str
    address: Address
    origin: str


class PassedSockets:
    """The listening sockets that a process was started with.

    Parameters:
        addresses: their real addresses, with the descriptors, by name.

    Attributes:
        unused: those that options have replaced; filled by `take_over`.
    """

    def __init__(self, addresses: Mapping[str, tuple[Address, ...]]) -> None:
        self._addresses = addresses
        self.unused: list[UnusedSocket] = []

    def take_over(self, origins: Mapping[str, str]) -> dict[str, object]:
        """Return the values of the options that the sockets replace, and close the other sockets.

        Parameters:
            origins: where the given options come from, by option name.

        Returns:
            Addresses, or one address, by option name.
        """
        values: dict[str, object] = {}
        for name, addresses in self._addresses.items():
            option = OPTION_OF[name]
            if option not in origins:
                values[option] = addresses[0] if option in _SINGLE else addresses
                continue
            for address in addresses:
                self.unused.append(UnusedSocket(name, address, origins[option]))
                assert address.descriptor is not None
                os.close(address.descriptor)
        return values


def passed_sockets(environment: MutableMapping[str, str], pid: int) -> PassedSockets:
    """Find the sockets that the service manager has passed to this process.

    Their variables are removed from the environment, and the descriptors are closed on exec, so that no child
    takes them for its own.

    Parameters:
        environment: environment variables. Variables for another process are ignored.
        pid: the id of this process.

    Returns:
        The sockets; none without the variables.

    Raises:
        ValueError: a variable is wrong, or a socket cannot be used; the message is one line and names it.
    """
    pid_text, count_text, names_text = (environment.pop(name, None) for name in VARIABLES)
    if pid_text is None or count_text is None:
        return PassedSockets({})
    if _number("LISTEN_PID", pid_text) != pid:
        return PassedSockets({})
    count = _number("LISTEN_FDS", count_text)
    names = None if names_text is None else names_text.split(":")
    if names is not None and len(names) != count:
        raise ValueError(
            f"LISTEN_FDNAMES: the number of names, {len(names)}, is not that of sockets, {count}"
        )
    addresses: dict[str, list[Address]] = {}
    for descriptor in range(FIRST_DESCRIPTOR, FIRST_DESCRIPTOR + count):
        name = "" if names is None else names[descriptor - FIRST_DESCRIPTOR]
        try:
            address = _address(descriptor)
        except ValueError as error:
            raise ValueError(f"{_described(name, descriptor)}: {error}") from None
        if name not in OPTION_OF:
            if count > 1:
                raise ValueError(
                    f"{_described(name, descriptor)}, which listens on {address}: among several sockets it"
                    f" needs FileDescriptorName= with one of the names {', '.join(OPTION_OF)}"
                )
            name = "iproto"
        addresses.setdefault(name, []).append(address)
    for name, found in addresses.items():
        if len(found) > 1 and OPTION_OF[name] in _SINGLE:
            places = ", ".join(map(str, found))
            raise ValueError(
                f'LISTEN_FDS: {len(found)} sockets are called "{name}", and only one may be: {places}'
            )
    return PassedSockets({name: tuple(found) for name, found in addresses.items()})


def _number(variable: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text) or not 0 < int(text) <= _MOST:
        raise ValueError(f'{variable}: "{text}" is not a positive number')
    return int(text)


def _described(name: str, descriptor: int) -> str:
    """Return a passed descriptor as an error names it."""
    described = f"LISTEN_FDS: descriptor {descriptor}"
    return f'{described}, "{name}"' if name else described


def _address(descriptor: int) -> Address:
    """Return the address of a listening socket. Raises ValueError if it is none."""
    try:
        passed = socket.socket(fileno=descriptor)
    except OSError as error:
        if error.errno == errno.EBADF:
            raise ValueError("it is not open") from None
        if error.errno == errno.ENOTSOCK:
            raise ValueError("it is not a socket") from None
        raise ValueError(error.strerror or str(error)) from None
    try:
        if passed.family not in _FAMILIES or passed.type != socket.SOCK_STREAM:
            raise ValueError("it is not a stream socket of TCP or unix: use ListenStream=")
        if not passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise ValueError("it does not listen: use Accept=no")
        os.set_inheritable(descriptor, False)
        name = passed.getsockname()
        if passed.family != socket.AF_UNIX:
            return Address(name[0], name[1], descriptor=descriptor)
        # The name of an abstract socket is bytes that begin with zero; "@" stands for it, as in systemd.
        path = os.fsdecode(name).replace("\0", "@", 1) if isinstance(name, bytes) else name
        return Address(path=path or "@", descriptor=descriptor)
    finally:
        passed.detach()
