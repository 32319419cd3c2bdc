"""A server for tests: options by name, connections that close by themselves, stopping and starting again."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from iproto_server.testing.serving import ServerFailed, Serving, failure, serve

if TYPE_CHECKING:
    import tarantool

Application: TypeAlias = "str | os.PathLike[str]"
"""An application: "module:attribute", or the path of a Lua file."""

Applications: TypeAlias = "Iterable[Application] | Application"

_ANY_PORT = "127.0.0.1:0"

_AUDIBLE = ("info", "verbose", "debug", "5", "6", "7")
"""The log levels at which a server says where it listens."""


class IprotoServer:
    """An `iproto-server serve` process, from `start()` (or `with`) to `stop()`.

    Parameters:
        work_dir: its directory; made when it is not there. What was in it is taken over.
        apps: the applications, each "module:attribute" or the path of a Lua file, where a relative path
            begins in the current directory.
        environment: environment variables for it, beside the test's own.
        options: options of the command line by their names in `box.cfg`'s manner: `wal_mode="fsync"`,
            `read_only=True`, `listen=["127.0.0.1:3301", "unix:jobs.sock"]`. Without `listen` it takes a free
            port of 127.0.0.1, and takes it again when it starts again.

    Raises:
        TypeError: there is no such option, or an application is no string.
        ValueError: a `log_level` at which it would not say where it listens.
    """

    opened: ClassVar[list[IprotoServer]] = []
    """Those that were started and not closed yet: their logs are shown when a test fails."""

    def __init__(
        self,
        work_dir: Path,
        apps: Applications = (),
        *,
        environment: Mapping[str, str] | None = None,
        **options: object,
    ) -> None:
        self.work_dir = Path(work_dir)
        self.apps = tuple(_applications(apps))
        self._words = list(_words(options))
        self._chooses_port = options.get("listen") is None
        self._environment = dict(environment or {})
        self._serving: Serving | None = None
        self._address = _ANY_PORT
        self._before: list[str] = []
        self._connections: list[tarantool.Connection] = []
        self._ended = False

    @property
    def address(self) -> str:
        """Where it listens: `127.0.0.1:34567`, or `unix:/path`; with several addresses, the first."""
        return self._known.address

    @property
    def host(self) -> str:
        """The address's host; "unix" for a unix socket."""
        return self._known.host

    @property
    def port(self) -> int:
        """The address's port; 0 for a unix socket."""
        return self._known.port

    @property
    def pid(self) -> int:
        """The process id."""
        return self._known.process.pid

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._serving is not None and self._serving.process.running

    @property
    def log(self) -> str:
        """Everything it has written to standard output and error, since its first start."""
        current = [self._serving.process.output] if self._serving is not None else []
        return "\n".join([*self._before, *current])

    def start(self) -> None:
        """Start it, and wait until it accepts connections. It does nothing when it runs.

        Raises:
            ServerFailed: it does not start; the message has its log's last lines.
        """
        __tracebackhide__ = True
        if self.running:
            return
        if self._serving is not None:
            self._before.append(self._serving.process.output)
        self.work_dir.mkdir(parents=True, exist_ok=True)
        words = [*self.apps, *self._words]
        if self._chooses_port:
            words += ["--listen", self._address]
        self._ended = False
        self._serving = serve(words, self.work_dir.resolve(), self._environment)
        self._address = self._serving.address
        if self not in self.opened:
            self.opened.append(self)

    def stop(self) -> None:
        """End it as SIGTERM does: what runs is finished and answered. It does nothing when that was done.

        Raises:
            ServerFailed: it had ended by itself, does not end, or ends with another status than 0.
        """
        __tracebackhide__ = True
        if self._serving is None or self._ended:
            return
        process = self._serving.process
        crashed = not process.running
        try:
            status = process.wait() if crashed else process.terminate()
        except AssertionError:
            raise ServerFailed(failure("does not end", process.output)) from None
        finally:
            self._ended = True
        if status != 0:
            ended = "ended by itself with" if crashed else "ended with"
            raise ServerFailed(failure(f"{ended} exit status {status}", process.output))

    def kill(self) -> None:
        """End it at once, as `kill -9` and a crash do."""
        self._ended = True
        self._known.process.kill()

    def restart(self) -> None:
        """Stop it, if it runs, and start it on the same directory and address.

        Connections of `connect()` find it again by themselves, at their next request.

        Raises:
            ServerFailed: as `stop` and `start`.
        """
        __tracebackhide__ = True
        self.stop()
        self.start()

    def connect(
        self, user: str | None = None, password: str | None = None, **more: Any
    ) -> tarantool.Connection:
        """Connect with tarantool-python. The connection is closed with the server, if not before.

        Parameters:
            user: who to log in as; None: guest.
            password: the user's password.
            more: what else `tarantool.Connection` takes: `fetch_schema=False`, `transport="ssl"`.

        Returns:
            The connection.

        Raises:
            tarantool.error.Error: whatever tarantool-python raises when it cannot connect or log in.
        """
        import tarantool  # not before it is needed: the plugin is imported in every test run

        host, port = (None, self.address[len("unix:") :]) if self.host == "unix" else (self.host, self.port)
        connection = tarantool.Connection(host, port, user=user, password=password, **more)
        self._connections.append(connection)
        return connection

    def close(self) -> None:
        """Close the connections and stop it.

        Raises:
            ServerFailed: as `stop`.
        """
        __tracebackhide__ = True
        for connection in self._connections:
            connection.close()
        self._connections.clear()
        if self in self.opened:
            self.opened.remove(self)
        self.stop()

    def __enter__(self) -> Self:
        __tracebackhide__ = True
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        __tracebackhide__ = True
        self.close()

    @property
    def _known(self) -> Serving:
        if self._serving is None:
            raise RuntimeError("the server was not started")
        return self._serving


def _applications(apps: Applications) -> Iterator[str]:
    for app in [apps] if isinstance(apps, (str, os.PathLike)) else apps:
        if not isinstance(app, (str, os.PathLike)):
            raise TypeError(
                f'an application is a string, "module:attribute", or the path of a Lua file, not of type'
                f" {type(app).__name__}: the server imports it in a process of its own"
            )
        text = os.fspath(app)
        yield os.path.abspath(text) if text.endswith(".lua") else text


def _words(options: Mapping[str, object]) -> Iterator[str]:
    """The command line that says the same."""
    from iproto_server.config.options import OPTIONS

    known = {option.name: option for option in OPTIONS if option.name not in ("apps", "work_dir")}
    for name, value in options.items():
        option = known.get(name)
        if option is None:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f', did you mean "{close[0]}"?' if close else ""
            raise TypeError(f'there is no option "{name}"{hint}')
        if name == "log_level" and str(value) not in _AUDIBLE:
            raise ValueError(
                f"with log_level={value!r} the server does not say when it listens; "
                f"it is one of {', '.join(_AUDIBLE)}"
            )
        if value is None:
            continue
        if not option.metavar:
            yield option.flag if value else f"--no-{option.flag[2:]}"
        else:
            for item in value if isinstance(value, (list, tuple)) else [value]:
                yield from (option.flag, str(item))
