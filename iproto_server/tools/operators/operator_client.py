"""The procedures `operator.…` of a server, as the operators' commands call them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Self

import tarantool

from iproto_server.errors import ErrorCode
from iproto_server.tools.client import ClientError, ServerUri, connect, reason, timed_out

PAGE: Final = 1000
"""The greatest number of tasks, or queues, that the server returns at once."""

Record = dict[str, Any]


class CallError(Exception):
    """The server refuses a call; the message is one line for the user."""


class NotAnOperatorsServerError(CallError):
    """The server has no procedures for operators."""


class OperatorClient:
    """A connection to a server.

    Parameters:
        uri: the server.

    Raises:
        ClientError: there is no connection to be had.
    """

    def __init__(self, uri: ServerUri) -> None:
        self.address = str(uri.address)
        self._timeout = uri.answer_timeout
        self._connection = connect(uri)

    def call(self, name: str, *arguments: object) -> list[Any]:
        """Call a procedure, and return its values.

        Raises:
            CallError: the server refuses it.
            ClientError: the connection has broken.
        """
        try:
            values: list[Any] = self._connection.call(name, arguments).data
        except tarantool.NetworkError as error:
            if timed_out(error):
                raise ClientError(
                    f"no answer from {self.address}: waited {self._timeout:g} s for that of {name}, which may"
                    " be carried out nevertheless"
                ) from error
            raise ClientError(f"the connection to {self.address} has broken: {reason(error)}") from error
        except tarantool.DatabaseError as error:
            if error.args and error.args[0] == ErrorCode.NO_SUCH_PROC and name.startswith("operator."):
                raise NotAnOperatorsServerError(
                    f"{self.address} has no procedures for operators: it is an older server, or Tarantool"
                ) from error
            raise CallError(reason(error)) from error
        except (tarantool.Error, OSError, ValueError) as error:
            raise ClientError(f"the connection to {self.address} has broken: {reason(error)}") from error
        return values

    def status(self) -> Record:
        """Return the state of the server."""
        status: Record = self._operator("status")
        return status

    def queues(self) -> list[Record]:
        """Return all queues."""
        found: list[Record] = []
        while True:
            options = {"limit": PAGE, **({"after": found[-1]["name"]} if found else {})}
            page: list[Record] = self._operator("queues", options)
            found += page
            if len(page) < PAGE:
                return found

    def sessions(self, limit: int) -> list[Record]:
        """Return the sessions, each with up to `limit` of its tasks."""
        sessions: list[Record] = self._operator("sessions", {"limit": limit})
        return sessions

    def tasks(
        self,
        queue: str,
        state: str | None,
        older: float | None,
        limit: int,
        data_size: int | None = None,
    ) -> Iterator[Record]:
        """Return tasks of a queue.

        Parameters:
            queue: its name.
            state: the state; None for all.
            older: the minimum age in seconds.
            limit: the maximum number.
            data_size: the size to which payloads are cut, as `cut_payload` does; None: they are whole. Older
                servers do not cut them.
        """
        after: object = None
        while limit > 0:
            given = {
                **{"state": state, "older": older, "after": after, "limit": min(limit, PAGE)},
                "data_size": data_size,
            }
            options = {name: value for name, value in given.items() if value is not None}
            try:
                page: list[Record] = self._operator("tasks", queue, options)
            except CallError as error:
                if data_size is None or "no option 'data_size'" not in str(error):
                    raise
                data_size = None
                continue
            yield from page
            limit -= len(page)
            if len(page) < given["limit"]:  # type: ignore[operator]
                return
            after = page[-1]["id"]

    def repair(self, action: str, queue: str, ids: list[str], *target: str) -> list[Record]:
        """Release, bury, delete, move or requeue tasks, a thousand at a time, and return them."""
        repaired: list[Record] = []
        for begin in range(0, len(ids), PAGE):
            repaired += self._operator(action, queue, ids[begin : begin + PAGE], *target)
        return repaired

    def change(self, action: str, queue: str, *options: object) -> Record:
        """Pause, drain, resume or configure a queue, and return it."""
        changed: Record = self._operator(action, queue, *options)
        return changed

    def kick(self, queue: str, count: int) -> int:
        """Make buried tasks ready, a thousand at a time, and return their number."""
        kicked = 0
        while kicked < count:
            wanted = min(count - kicked, PAGE)
            done = self._operator("kick", queue, wanted)
            kicked += done
            if done < wanted:
                break
        return kicked

    def schedules(self) -> list[Record]:
        """Return the schedules in the order of their names."""
        schedules: list[Record] = self._operator("schedules")
        return schedules

    def schedule(self, name: str, definition: Record) -> Record:
        """Create or replace a schedule, and return it.

        Parameters:
            name: its name.
            definition: as `operator.schedule` takes it.
        """
        schedule: Record = self._operator("schedule", name, definition)
        return schedule

    def unschedule(self, name: str) -> Record:
        """Remove a schedule, and return it as it was."""
        schedule: Record = self._operator("unschedule", name)
        return schedule

    def _operator(self, name: str, *arguments: object) -> Any:
        values = self.call(f"operator.{name}", *arguments)
        return values[0] if values else None

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
