"""One connection of an asynchronous queue. Tasks belong to the connection that took them."""

from __future__ import annotations

from typing import Any

import asynctnt
from asynctnt.exceptions import TarantoolDatabaseError, TarantoolNetworkError

from iproto_server.client.dialects import (
    BY_NAME,
    VIEW_OF_SPACES,
    Call,
    Dialect,
    Tutorial,
    no_tubes,
    tube_from_row,
)
from iproto_server.client.endpoint import Endpoint
from iproto_server.client.errors import NotConnected, Refused


class Link:
    """A connection, from its start until it is lost; it never reconnects.

    Parameters:
        connection: connected.
        request_timeout: seconds in which a response must come, beside the time that the request may wait.
    """

    dialect: Dialect

    def __init__(self, connection: Any, request_timeout: float) -> None:
        self._connection = connection
        self._request_timeout = request_timeout

    @classmethod
    async def open(cls, endpoint: Endpoint, connect_timeout: float, request_timeout: float) -> Link:
        """Connect, log in, and find out what the queue can do.

        Parameters:
            endpoint: the queue.
            connect_timeout, request_timeout: seconds.

        Raises:
            NotConnected: there is no server.
            Refused: the server refuses the login.
            QueueError: there is no such tube.
        """
        address = endpoint.address
        connection = asynctnt.Connection(
            host="unix/" if address.path else endpoint.host,
            port=address.path or address.port,
            username=endpoint.user,
            password=endpoint.password,
            fetch_schema=False,
            auto_refetch_schema=False,
            connect_timeout=connect_timeout,
            reconnect_timeout=0,
            ping_timeout=0,
        )
        link = cls(connection, request_timeout)
        try:
            await connection.connect()
        except TarantoolDatabaseError as error:
            raise Refused(error.code, f"{address}: {error.message}") from None
        except (TarantoolNetworkError, OSError, AssertionError, TimeoutError) as error:
            # The library asserts that the path of a unix socket exists.
            reason = str(error) or type(error).__name__
            raise NotConnected(f"cannot connect to {address}: {reason}") from error
        try:
            link.dialect = await link._find_dialect(endpoint)
        except BaseException:
            link.close()
            raise
        return link

    @property
    def is_up(self) -> bool:
        """Whether it is connected."""
        return bool(self._connection.is_fully_connected)

    async def call(self, call: Call, waits: float = 0.0) -> list[Any]:
        """Call a procedure.

        Parameters:
            call: its name and arguments.
            waits: seconds for which the procedure may wait.

        Returns: its results.

        Raises:
            NotConnected: the connection is lost, or there was no response in time, after which it is closed.
            Refused: the server answered with an error.
        """
        return await self._request(self._connection.call, call.name, call.arguments, waits=waits)

    def close(self) -> None:
        """Close it; requests under way fail."""
        self._connection.close()

    async def _find_dialect(self, endpoint: Endpoint) -> Dialect:
        if endpoint.tube is None:
            return Tutorial()
        spaces = await self._request(self._connection.select, VIEW_OF_SPACES, ["_queue"], index=BY_NAME)
        if not spaces:
            raise no_tubes(endpoint.user)
        rows = await self._request(self._connection.select, spaces[0][0], [endpoint.tube])
        return tube_from_row(endpoint.tube, rows[0] if rows else None)

    async def _request(self, method: Any, *arguments: Any, waits: float = 0.0, **more: Any) -> list[Any]:
        if not self.is_up:
            raise NotConnected("the connection is lost; the request was not sent")
        try:
            response = await method(*arguments, timeout=waits + self._request_timeout, **more)
        except TarantoolDatabaseError as error:
            raise Refused(error.code, error.message) from None
        except TimeoutError as error:
            self.close()
            raise NotConnected("the server did not respond in time", may_have_been_done=True) from error
        except (TarantoolNetworkError, OSError) as error:
            raise NotConnected(f"the connection was lost: {error}", may_have_been_done=True) from error
        return list(response.body or [])
