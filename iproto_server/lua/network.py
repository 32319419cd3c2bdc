"""What Lua's sockets need of the event loop: descriptors that are ready, and host names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

Function = Callable[..., Any]


class Network:
    """Functions of Python for `internal.sockets.descriptors` and `internal.sockets.resolver`.

    Parameters:
        loop: the event loop.
        call: calls a function of Lua with arguments.

    Attributes:
        functions: the functions, by name.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, call: Function) -> None:
        self._loop = loop
        self._call = call
        self._on_ready: Function | None = None
        self.functions: Mapping[str, Function] = {
            "on_descriptor_ready": self._set_on_ready,
            "watch_descriptor": self._watch,
            "unwatch_descriptor": self._unwatch,
            "resolve_address": self._resolve,
        }

    def _set_on_ready(self, function: Function) -> None:
        self._on_ready = function

    def _watch(self, descriptor: int, writing: bool) -> None:
        add = self._loop.add_writer if writing else self._loop.add_reader
        add(descriptor, self._ready, descriptor, writing)

    def _ready(self, descriptor: int, writing: bool) -> None:
        # Lua's function comes soon after the first descriptor; until then, the event loop asks again.
        if self._on_ready is not None:
            self._call(self._on_ready, descriptor, writing)

    def _unwatch(self, descriptor: int, writing: bool) -> None:
        if self._loop.is_closed():  # at the end of the process, when Lua collects its sockets
            return
        remove = self._loop.remove_writer if writing else self._loop.remove_reader
        remove(descriptor)

    def _resolve(
        self,
        done: Function,
        host: bytes | None,
        service: bytes | None,
        family: int,
        kind: int,
        protocol: int,
        flags: int,
    ) -> None:
        """Find the addresses of a host and a service.

        Parameters:
            done: called with the values of all addresses, see `functions.address.flat`.
            host: a name or an address; None is the loopback address, or any with AI_PASSIVE.
            service: a name or a number.
            family, kind, protocol, flags: as for getaddrinfo of the operating system.
        """
        lookup = self._loop.getaddrinfo(host, service, family=family, type=kind, proto=protocol, flags=flags)
        task = self._loop.create_task(lookup)
        task.add_done_callback(lambda task: self._resolved(done, task))

    def _resolved(self, done: Function, task: asyncio.Task[list[Any]]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not isinstance(error, (OSError, UnicodeError)):
            raise error
        from iproto_server.lua.functions.address import flat

        self._call(done, *(flat(task.result()) if error is None else ()))
