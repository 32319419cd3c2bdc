"""Limits on the number of connections: in total, per address and per user."""

from __future__ import annotations

import ipaddress
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from iproto_server.config.config import Config
from iproto_server.descriptors import RESERVED, descriptor_limit, raise_descriptor_limit
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.server.limits.rate_limited_log import RateLimitedLog

logger = logging.getLogger("iproto_server.server")

_IN_ALL: Final = "max_connections"
_PER_ADDRESS: Final = "max_connections_per_address"
_PER_USER: Final = "max_connections_per_user"
_DESCRIPTORS: Final = "descriptors"


class Ticket:
    """A counted connection, from its acceptance to its end.

    Parameters:
        admission: the admission that counts it.
        host: the client's address; None for a unix socket.
        peer: address and port, for the log.

    Attributes:
        is_valid: whether it is still counted.
        user: the user that it is counted for.
    """

    __slots__ = ("_admission", "host", "is_valid", "peer", "user")

    def __init__(self, admission: Admission, host: str | None, peer: str) -> None:
        self._admission = admission
        self.is_valid = True
        self.host = host
        self.peer = peer
        self.user: str | None = None

    def log_in(self, user: str | None) -> None:
        """Count the connection as a user's.

        Parameters:
            user: the user's name; None for guest, which is not counted.

        Raises:
            BoxError: SYSTEM, the user has reached the limit.
        """
        self._admission.log_in(self, user)

    def begin_handshake(self, give_up: Callable[[], object]) -> None:
        """Note that the connection begins with a handshake.

        Parameters:
            give_up: ends it.
        """

    def give_back(self) -> None:
        """Stop counting the connection; a second call does nothing."""
        if self.is_valid:
            self.is_valid = False
            self._admission.leave(self)


class Admission:
    """Counts connections, and refuses those above a limit.

    Parameters:
        config: returns the current configuration.
        log: logs refused connections.

    Attributes:
        connections: current number, including unfinished TLS handshakes.
        accepted: number accepted so far.
        failed_handshakes: number of those whose handshake failed.
    """

    def __init__(self, config: Callable[[], Config], log: RateLimitedLog) -> None:
        self._config = config
        self._log = log
        self._per_address: Counter[str] = Counter()
        self._per_user: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self.connections = 0
        self.accepted = 0
        self.failed_handshakes = 0

    @property
    def limit(self) -> int:
        """The maximum number of connections."""
        configured = self._config().max_connections
        if configured is not None:
            return configured
        descriptors = descriptor_limit()
        return descriptors - min(RESERVED, descriptors // 2)

    def reserve_descriptors(self) -> None:
        """Raise the descriptor limit to what `max_connections` needs; log a warning if that fails."""
        most = self._config().max_connections
        if most is not None:
            limit = raise_descriptor_limit(most + RESERVED)
            if limit < most + RESERVED:
                logger.warning(
                    "max_connections of %d needs %d descriptors, but the system allows %d",
                    most,
                    most + RESERVED,
                    limit,
                )

    def admit(self, host: str | None, peer: str) -> Ticket:
        """Admit a connection.

        Parameters:
            host: the client's address; None for a unix socket, which has no limit per address.
            peer: address and port.

        Raises:
            BoxError: SYSTEM, a limit is reached.
        """
        if self.connections >= self.limit:
            raise self._refusal(_IN_ALL, peer, f"max_connections is {self.limit}")
        if host is not None:
            host = _plain(host)
            limit = self._config().max_connections_per_address
            if limit and self._per_address[host] >= limit:
                reason = f"{host} has {limit}, as max_connections_per_address allows"
                raise self._refusal(_PER_ADDRESS, peer, reason, host)
            self._per_address[host] += 1
        self.connections += 1
        self.accepted += 1
        return Ticket(self, host, peer)

    def log_in(self, ticket: Ticket, user: str | None) -> None:
        """See `Ticket.log_in`."""
        if user == ticket.user:
            return
        limit = self._config().max_connections_per_user
        if user is not None:
            if limit and self._per_user[user] >= limit:
                reason = f"user '{user}' has {limit}, as max_connections_per_user allows"
                raise self._refusal(_PER_USER, ticket.peer, reason, user)
            self._per_user[user] += 1
        _count_down(self._per_user, ticket.user)
        ticket.user = user

    def leave(self, ticket: Ticket) -> None:
        """See `Ticket.give_back`."""
        self.connections -= 1
        _count_down(self._per_address, ticket.host)
        _count_down(self._per_user, ticket.user)

    def out_of_descriptors(self, reason: str) -> BoxError:
        """Count and log a connection that the system cannot accept; return the error for the client.

        Parameters:
            reason: the system's error text.
        """
        self._refused[_DESCRIPTORS] += 1
        self._log.event(
            logging.ERROR,
            "cannot accept connections",
            key=_DESCRIPTORS,
            reason=reason,
            connections=self.connections,
            descriptor_limit=descriptor_limit(),
        )
        return _too_many(reason)

    def counters(self) -> Iterator[tuple[str, int | float]]:
        """The counters, for Graphite."""
        yield "server.connections.accepted", self.accepted
        yield "server.connections.failed_handshakes", self.failed_handshakes
        for reason in (_IN_ALL, _PER_ADDRESS, _PER_USER, _DESCRIPTORS):
            yield f"server.connections.refused.{reason}", self._refused[reason]

    def _refusal(self, kind: str, peer: str, reason: str, about: str = "") -> BoxError:
        self._refused[kind] += 1
        self._log.event(logging.WARNING, "refused a connection", key=(kind, about), peer=peer, reason=reason)
        return _too_many(reason)


def _too_many(reason: str) -> BoxError:
    return BoxError(ErrorCode.SYSTEM, f"Too many connections: {reason}")


def _count_down(counts: Counter[str], name: str | None) -> None:
    """Decrement a count, and forget it at zero."""
    if name is not None:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]


def _plain(host: str) -> str:
    """Normalize an address for counting: IPv4 addresses mapped into IPv6 become IPv4."""
    if host.startswith("::ffff:"):
        mapped = ipaddress.IPv6Address(host).ipv4_mapped
        return host if mapped is None else str(mapped)
    return host.partition("%")[0]
