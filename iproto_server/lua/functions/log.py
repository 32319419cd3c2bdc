"""The log, for `log.lua`: events go to the logger `iproto_server.lua` of Python's logging."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from iproto_server.logging.log_output import LogOutput
from iproto_server.logging.tarantool_format import LOGGING_LEVELS, Format, Origin
from iproto_server.lua.errors import HostError

logger = logging.getLogger("iproto_server.lua")

_FORMATS: Final[Mapping[bytes, Format]] = {b"plain": "plain", b"json": "json"}


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


class LuaLog:
    """What Lua code may do with the log of the process.

    Parameters:
        output: the log's output, which Lua code may set; None: it belongs to the server.
    """

    def __init__(self, output: LogOutput | None = None) -> None:
        self._output = output

    def write(
        self,
        level: int,
        message: bytes,
        file: bytes | None = None,
        line: int = 0,
        fiber_id: int | None = None,
        fiber_name: bytes | None = None,
        members: bytes | None = None,
        error: bytes | None = None,
    ) -> None:
        """Log an event, see `Origin`."""
        level = int(level)
        if not logger.isEnabledFor(LOGGING_LEVELS[level]):
            return
        origin = Origin(
            level,
            None if file is None else _text(file),
            int(line),
            None if fiber_id is None else int(fiber_id),
            _text(fiber_name or b""),
            None if error is None else _text(error),
            None if members is None else _text(members),
        )
        fields: dict[str, object] = {}
        if origin.file is not None:
            fields["place"] = f"{origin.file}:{origin.line}"
        if origin.fiber_id is not None:
            fields["fiber"] = f"{origin.fiber_id}/{origin.fiber_name}"
        if origin.error is not None:
            fields["error"] = origin.error
        # The text is no format: it has no arguments.
        logger.log(LOGGING_LEVELS[level], _text(message), extra={"origin": origin, "fields": fields})

    def set_level(self, level: float) -> None:
        """Drop events that are less important than a level of Tarantool, in all loggers."""
        place = min(max(int(level), 0), len(LOGGING_LEVELS) - 1)
        logging.getLogger().setLevel(LOGGING_LEVELS[place])

    def set_format(self, log_format: bytes) -> None:
        """Change the format of the log's lines, `plain` or `json`."""
        if self._output is not None:
            self._output.log_format = _FORMATS[log_format]
        else:
            from iproto_server.logging.log_setup import change_format

            change_format(_FORMATS[log_format])

    def open(self, destination: bytes) -> None:
        """Send the log to a destination, see `log_output`.

        Raises:
            HostError: it cannot be opened, or is unknown, or the log belongs to the server.
        """
        if self._output is None:
            raise HostError("the log belongs to the server: set its option --log-file")
        try:
            self._output.open(destination)
        except OSError as error:
            raise HostError(f"can't open log {_text(destination)}: {error.strerror}") from error
        except ValueError as error:
            raise HostError(str(error)) from error

    def is_own(self) -> bool:
        """Whether Lua code sets the log's output; else it belongs to the server."""
        return self._output is not None

    def rotate(self) -> None:
        """Open the log's file again.

        Raises:
            HostError: it cannot be opened.
        """
        try:
            if self._output is not None and self._output.rotate():
                self.write(5, b"log file has been reopened")
        except OSError as error:
            raise HostError(f"can't open log file: {error.strerror}") from error

    def process_id(self) -> int:
        """The number of the program that the log is written to; 0 if it goes elsewhere."""
        return 0 if self._output is None else self._output.process_id

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """The functions for Lua, by name."""
        return {
            "log_is_own": self.is_own,
            "log_open": self.open,
            "log_process_id": self.process_id,
            "log_rotate": self.rotate,
            "log_set_format": self.set_format,
            "log_set_level": self.set_level,
            "log_write": self.write,
        }


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = LuaLog().functions()
