"""An event loop that is made when it is needed first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import asyncio


class LazyLoop:
    """Stands for an event loop of uvloop, whose import takes longer than a short script.

    Attributes:
        is_made: whether the loop exists.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_made(self) -> bool:
        """Whether the loop exists."""
        return self._loop is not None

    def made(self) -> asyncio.AbstractEventLoop:
        """Return the loop, which exists from now on."""
        if self._loop is None:
            import asyncio

            import uvloop

            self._loop = uvloop.new_event_loop()
            asyncio.set_event_loop(self._loop)
        return self._loop

    def __getattr__(self, name: str) -> Any:
        return getattr(self.made(), name)

    def as_loop(self) -> asyncio.AbstractEventLoop:
        """Return this object with the type of a loop."""
        return cast("asyncio.AbstractEventLoop", self)
