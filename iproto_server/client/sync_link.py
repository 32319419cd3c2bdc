"""A connection to a queue for plain scripts, on tarantool-python."""

from __future__ import annotations

from typing import Any

import tarantool
from tarantool.error import DatabaseError, NetworkError

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


class _WasLostError(Exception):
    """The library wants to connect again."""


class _Connection(tarantool.Connection):  # type: ignore[misc]
    """A connection that is never replaced by another: tasks belong to the one that took them."""

    _was_connected = False

    def connect_basic(self) -> None:
        """Connect, once."""
        if self._was_connected:
            raise _WasLostError
        super().connect_basic()
        self._was_connected = True


class SyncLink:
    """A connection, from its start until it is lost.

    Parameters:
        endpoint: the queue.
        connect_timeout: seconds for connecting.
    """

    dialect: Dialect

    def __init__(self, endpoint: Endpoint, connect_timeout: float) -> None:
        address = endpoint.address
        self.is_up = True
        try:
            self._connection = _Connection(
                host=None if address.path else endpoint.host,
                port=address.path or address.port,
                user=endpoint.user,
                password=endpoint.password,
                connection_timeout=connect_timeout,
                fetch_schema=endpoint.tube is not None,  # without it, the library selects nothing
            )
        except NetworkError as error:
            cause = error.__cause__
            if isinstance(cause, DatabaseError) and not isinstance(cause, NetworkError):
                refusal = _refused(cause)
                raise Refused(refusal.code, f"{address}: {refusal}") from None
            raise NotConnected(f"cannot connect to {address}: {error}") from error
        try:
            self.dialect = self._find_dialect(endpoint)
        except BaseException:
            self.close()
            raise

    def call(self, call: Call) -> list[Any]:
        """Call a procedure; as `iproto_server.client.link.Link.call`."""
        return self._request(self._connection.call, call.name, call.arguments)

    def close(self) -> None:
        """Close it."""
        self.is_up = False
        self._connection.close()

    def _find_dialect(self, endpoint: Endpoint) -> Dialect:
        if endpoint.tube is None:
            return Tutorial()
        spaces = self._request(self._connection.select, VIEW_OF_SPACES, ["_queue"], index=BY_NAME)
        if not spaces:
            raise no_tubes(endpoint.user)
        rows = self._request(self._connection.select, spaces[0][0], [endpoint.tube])
        return tube_from_row(endpoint.tube, rows[0] if rows else None)

    def _request(self, method: Any, *arguments: Any, **more: Any) -> list[Any]:
        if not self.is_up:
            raise NotConnected("the connection is lost; the request was not sent")
        try:
            return list(method(*arguments, **more).data or [])
        except _WasLostError:
            self.close()
            raise NotConnected("the connection is lost; the request was not sent") from None
        except NetworkError as error:
            self.close()
            sent = not isinstance(error.__cause__, _WasLostError)
            raise NotConnected(f"the connection was lost: {error}", may_have_been_done=sent) from error
        except DatabaseError as error:
            raise _refused(error) from None
        except (TypeError, ValueError, OverflowError):
            raise  # the request could not be packed
        except BaseException:
            self.close()  # interrupted: its response would be taken for that of the next request
            raise


def _refused(error: DatabaseError) -> Refused:
    """Return the server's error: its number and text."""
    if len(error.args) > 1:
        return Refused(int(error.args[0]), str(error.args[1]))
    return Refused(0, str(error))
