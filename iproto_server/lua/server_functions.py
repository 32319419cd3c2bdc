"""Functions of Lua's modules that need the server, which is imported when one of them is called first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:

    class ServerFunctions(Protocol):
        """What starts the server, and uses it; see `LuaServer`."""

        def start_box(self, answer: Callable[..., object], packed: bytes) -> None: ...
        def listen(self, answer: Callable[..., object], packed: bytes) -> None: ...
        def wait_for_box(self, answer: Callable[..., object], name: bytes) -> None: ...


NAMES: Final = ("start_box", "listen", "wait_for_box")


def server_functions(server: Callable[[], ServerFunctions]) -> Mapping[str, Callable[..., Any]]:
    """Return the functions by name.

    Parameters:
        server: returns the server, the same at each call.
    """

    def function(name: str) -> Callable[..., Any]:
        return lambda *arguments: getattr(server(), name)(*arguments)

    return {name: function(name) for name in NAMES}
