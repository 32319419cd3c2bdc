"""Starts servers by forking itself: `python -m tests.crash.servers.fork_server DESCRIPTOR MODULE…`.

It has imported all modules that a server needs, so that a start takes milliseconds. It never has an event
loop or a second thread, so a child is what a new process would be after its imports. `forked` is its client.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from iproto_server.cli import main as serve

REQUEST_MAX: Final = 65_536
"""The maximum number of bytes of a request."""

OWN_THREADS: Final = Path("/proc/self/task")

PROGRAM: Final = str(Path(__file__).parents[3] / "iproto_server" / "__main__.py")
"""The first word of a server's command line."""


class ForkServer:
    """Forks on request.

    Parameters:
        channel: Its only connection. A request is `{"arguments": […], "directory": "…"}` with a descriptor
            for the output, answered by the child's process id; or `{"reap": PID}`, answered by the child's
            exit status.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._children: set[int] = set()

    def run(self) -> list[str] | None:
        """Answer requests until the connection ends; then kill what is left.

        Returns:
            In a child, the arguments of the command that it is to run; None in the parent.
        """
        while True:
            message, descriptors, _, _ = socket.recv_fds(self._channel, REQUEST_MAX, 1)
            if not message:
                break
            request = json.loads(message)
            if "reap" in request:
                pid = request["reap"]
                self._children.remove(pid)
                self._answer(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                continue
            [output] = descriptors
            assert len(list(OWN_THREADS.iterdir())) == 1, "threads do not survive a fork"
            pid = os.fork()
            if not pid:
                return self._become(request, output)
            os.close(output)
            self._children.add(pid)
            self._answer(pid)
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        return None

    def _become(self, request: dict[str, Any], output: int) -> list[str]:
        """Make a child look like a new process."""
        self._channel.close()
        for descriptor in (sys.stdout.fileno(), sys.stderr.fileno()):
            os.dup2(output, descriptor)
        os.close(output)
        os.chdir(request["directory"])
        signal.signal(signal.SIGINT, signal.default_int_handler)
        arguments: list[str] = request["arguments"]
        sys.argv = [PROGRAM, *arguments]
        return arguments

    def _answer(self, number: int) -> None:
        self._channel.send(json.dumps(number).encode())


def main() -> int:
    """Fork until the connection ends; in a child, run the command.

    Returns:
        The exit status.
    """
    descriptor, *modules = sys.argv[1:]
    # The connection ends if the client is interrupted.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for module in modules:
        import_module(module)
    # Pages with objects that no collection visits remain shared.
    gc.collect()
    gc.freeze()
    arguments = ForkServer(socket.socket(fileno=int(descriptor))).run()
    return 0 if arguments is None else serve(arguments)


if __name__ == "__main__":
    sys.exit(main())
