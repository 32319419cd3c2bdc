"""The call `log.rotate`."""

from __future__ import annotations

from typing import Any

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.logging.log_setup import rotate_logs

LOG_ROTATE = "log.rotate"
"""The call that makes the log's file anew. Source: Tarantool reference, "Module log", `rotate`."""


def rotate_on_call(arguments: list[Any]) -> None:
    """Make the log's file anew for a client."""
    try:
        rotate_logs()
    except OSError as error:
        raise BoxError.with_message(
            ErrorCode.SYSTEM, f"cannot open the log {error.filename}: {error.strerror}", type="SystemError"
        ) from error
