"""The process that runs a script of Lua: its event loop, signals and end.

It ends as Tarantool's does: after the script if nothing is left that waits for a time or for input;
otherwise by `os.exit`, an error of the script, SIGINT or SIGTERM.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from iproto_server.logging.log_output import LogOutput
from iproto_server.lua.fibers import FiberRuntime
from iproto_server.lua.functions.log import LuaLog
from iproto_server.lua.server_functions import server_functions
from iproto_server.tarantool_cli.command_line import CommandLine
from iproto_server.tarantool_cli.lazy_loop import LazyLoop

if TYPE_CHECKING:
    from iproto_server.server.lua.lua_server import LuaServer


class Program:
    """A process that runs one script.

    Raises:
        LuaIsMissing: LuaJIT is not installed.
    """

    def __init__(self) -> None:
        self._loop = LazyLoop()
        self._status: int | None = None
        self._is_stop_requested = False
        self._postponed: list[Callable[[], object]] = []
        self._output = LogOutput()
        self._log = LuaLog(self._output)
        self._server: LuaServer | None = None
        self.runtime = FiberRuntime(
            self._loop.as_loop(),
            {
                **self._log.functions(),
                **server_functions(self._made_server),
                "program_end": self._end,
                "program_end_at_once": end_process,
                "program_is_stopping": lambda: self._is_stop_requested,
                "program_is_terminal": os.isatty,
                "program_is_serving": self._is_serving,
            },
        )

    def run(self, line: CommandLine, executable: str, name: str) -> int:
        """Run the script of a command line.

        Parameters:
            line: the command line.
            executable: the path of this program.
            name: what this program was started as.

        Returns:
            The exit status.
        """
        root = logging.getLogger()
        root.addHandler(self._output)
        root.setLevel(logging.INFO)
        self._handle_signals()
        self.runtime.require("internal.box.load")
        launcher = self.runtime.require("internal.program.launcher")
        words = (word for step in line.steps for word in step)
        self.runtime.call(
            launcher[b"start"],
            os.fsencode(executable),
            os.fsencode(name),
            None if line.script is None else os.fsencode(line.script),
            line.is_interactive,
            len(line.steps),
            *map(os.fsencode, words),
            *map(os.fsencode, line.script_arguments),
        )
        while self._status is None:
            # From here on, signals go to the loop; those that came before have left their calls.
            loop = self._loop.made()
            while self._postponed:
                loop.call_soon(self._postponed.pop(0))
            loop.run_forever()
        if self._server is not None:
            self._loop.run_until_complete(self._server.stop())
        self.runtime.call(launcher[b"flush"])
        return self._status

    def _made_server(self) -> LuaServer:
        """Return the server, which `box.cfg` starts."""
        if self._server is None:
            from iproto_server.server.lua.lua_server import LuaServer

            self._server = LuaServer(self._loop.made(), self.runtime)
        return self._server

    def _is_serving(self) -> bool:
        return self._server is not None and self._server.server is not None

    def _end(self, status: float) -> None:
        """End the process as soon as Lua code returns."""
        self._status = int(status)
        if self._loop.is_made:
            self._loop.stop()

    # -- signals --

    def _handle_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._request_stop())
        signal.signal(signal.SIGHUP, lambda *_: self._soon(self._rotate))
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, lambda *_: None)  # a snapshot, of a server

    def _soon(self, call: Callable[[], object]) -> None:
        """Call a function on the event loop, when no Lua code runs."""
        if self._loop.is_made:
            self._loop.call_soon_threadsafe(call)
        else:
            self._postponed.append(call)

    def _request_stop(self) -> None:
        self._is_stop_requested = True
        self._soon(self._begin_shutdown)

    def _begin_shutdown(self) -> None:
        if self._status is None:
            self.runtime.call(self.runtime.require("internal.program.shutdown")[b"begin"], 0)

    def _rotate(self) -> None:
        try:
            if self._output.rotate():
                self._log.write(5, b"log file has been reopened")
        except OSError as error:
            logging.getLogger("iproto_server.lua").error("can't open log file: %s", error.strerror)


def end_process(status: float) -> NoReturn:
    """End the process at once. As in Tarantool, finalizers of Lua objects are not called."""
    sys.stdout.flush()
    logging.shutdown()
    os._exit(int(status) & 0xFF)
