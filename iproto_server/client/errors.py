"""Errors between a worker and its queue."""

from __future__ import annotations

ACCESS_DENIED = 42
"""The code of the server's error for want of rights."""


class QueueError(Exception):
    """The base of all errors of this package."""


class NotConnected(QueueError):
    """There is no connection, or it was lost during the request.

    Parameters:
        message: what happened.
        may_have_been_done: the request was sent, so the server may have carried it out.
    """

    def __init__(self, message: str, *, may_have_been_done: bool = False) -> None:
        super().__init__(message)
        self.may_have_been_done = may_have_been_done


class Refused(QueueError):
    """The server answered with an error.

    Parameters:
        code: its number: 32 from a procedure, 33 for an unknown procedure, 42 for want of rights.
        message: its text.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class TaskLost(QueueError):
    """The connection that took the task is lost, so the task belongs to nobody or to another worker."""


class QueueFull(QueueError):
    """A tube of limited capacity has no room for the task."""


class Unsupported(QueueError):
    """The queue has no such operation."""


class HandlerStuck(QueueError):
    """A handler has ignored its cancellations, so that the worker cannot go on."""
