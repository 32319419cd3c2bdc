"""All listening sockets of a server, and the certificates of those with TLS."""

from __future__ import annotations

import logging
import ssl
from collections import defaultdict
from collections.abc import Iterable, Iterator

from iproto_server.config.address import Address
from iproto_server.config.config import Config, ConfigError
from iproto_server.errors import BoxError
from iproto_server.server.connection.connection import Connection
from iproto_server.server.connection.listener import ConnectionFactory, Listener, listen
from iproto_server.server.connection.server_state import ServerState
from iproto_server.server.limits.admission import Ticket

logger = logging.getLogger("iproto_server.server")


class Listeners:
    """The listening sockets of a server.

    Parameters:
        config: the configuration, with the addresses.

    Raises:
        ConfigError: the files of a TLS address cannot be used.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._contexts = tls_contexts(config)
        self._listeners: defaultdict[Address, list[Listener]] = defaultdict(list)

    def __iter__(self) -> Iterator[Listener]:
        for listeners in self._listeners.values():
            yield from listeners

    @property
    def addresses(self) -> list[Address]:
        """The addresses, with their real ports."""
        return [listener.address for listener in self]

    async def listen(
        self, address: Address, state: ServerState, kind: type[Connection], suffix: str = ""
    ) -> str:
        """Accept connections on an address.

        Parameters:
            address: the address.
            state: what the connections share.
            kind: the class of the connections, one for each protocol.
            suffix: the end of the log line.

        Returns: the address with its real port.

        Raises:
            OSError: the address cannot be used.
        """

        def connect(ticket: Ticket) -> Connection:
            return kind(state, ticket)

        def refuse(error: BoxError) -> bytes:
            return kind.refusal(state, error)

        factory = ConnectionFactory(connect, refuse, state.admission, state.rate_limited_log)
        return str(await self.accept(address, factory, suffix))

    async def listen_on(self, addresses: Iterable[Address], state: ServerState) -> list[str]:
        """Accept connections of the current protocol on addresses.

        Parameters:
            addresses: the addresses.
            state: what the connections share.

        Returns: the addresses with their real ports.

        Raises:
            OSError: an address cannot be used.
        """
        return [await self.listen(address, state, Connection) for address in addresses]

    async def accept(self, address: Address, factory: ConnectionFactory, suffix: str = "") -> Address:
        """Accept connections of any protocol on an address.

        Parameters:
            address: the address.
            factory: creates the connections.
            suffix: the end of the log line.

        Returns: the address with its real port.

        Raises:
            OSError: the address cannot be used.
        """
        context = self._contexts.get(address)
        listener = await listen(address, factory, self._config.work_dir, context)
        self._listeners[address].append(listener)
        logger.info("listening on %s%s%s", listener.address, ", TLS" if context else "", suffix)
        return listener.address

    def stop_listening(self, addresses: Iterable[Address]) -> None:
        """Accept no more connections on some addresses; those that are open stay.

        Parameters:
            addresses: the addresses as they were given to `listen`.
        """
        for address in addresses:
            for listener in self._listeners.pop(address, ()):
                listener.close()

    def close(self) -> None:
        """Accept no more connections."""
        for listener in self:
            listener.close()

    def read_certificates(self) -> None:
        """Read the files of TLS addresses again, for new connections.

        If they cannot be used, the previous ones stay in force, and an error is logged.
        """
        if not self._contexts:
            return
        try:
            self._contexts = tls_contexts(self._config)
        except ConfigError as error:
            logger.error("cannot read the certificates again, the previous ones stay in force: %s", error)
            return
        for address, listeners in self._listeners.items():
            for listener in listeners:
                listener.context = self._contexts.get(address)
        logger.info("read the certificates again")


def tls_contexts(config: Config) -> dict[Address, ssl.SSLContext]:
    """Make the TLS context of each address that has TLS. Raises ConfigError."""
    contexts: dict[Address, ssl.SSLContext] = {}
    for address in (*config.listen, *config.listen_1_5, *config.http_addresses):
        if address.tls is not None:
            try:
                contexts[address] = address.tls.context(config.work_dir)
                for warning in address.tls.warnings(config.work_dir):
                    logger.warning("listen %s: %s", address, warning)
            except ValueError as error:
                raise ConfigError(f"listen {address}: {error}") from error
    return contexts
