"""`box.stat`: how many requests there were, in all and per second.

Source: Tarantool reference, "Submodule box.stat".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

Rate = dict[str, int]
"""`total` since the start, `rps` per second in the last five; `current` where something is under way."""


class NetworkStatistics:
    """`box.stat.net`."""

    def __init__(self) -> None:
        self.source: Callable[[], Mapping[str, Rate]] = dict

    def __call__(self) -> dict[str, Rate]:
        """By name: CONNECTIONS, REQUESTS, SENT and RECEIVED (bytes), and so on."""
        return dict(self.source())

    def thread(self) -> list[dict[str, Rate]]:
        """The same for each network thread, of which there is one."""
        return [self()]

    def __getattr__(self, name: str) -> Rate:
        return _named(self(), name, "box.stat.net")


class Statistics:
    """`box.stat`: requests of clients, by type.

    Unlike Tarantool's, it does not count what procedures do by themselves.

    Attributes:
        net: `box.stat.net`.
        source: answers the numbers; whoever has clients sets it, and
        reset: begins to count anew.
    """

    def __init__(self) -> None:
        self.net = NetworkStatistics()
        self.source: Callable[[], Mapping[str, Rate]] = dict
        self.reset: Callable[[], None] = lambda: None

    def __call__(self) -> dict[str, Rate]:
        """By the type's name: SELECT, INSERT, CALL and so on, and ERROR for all that failed."""
        return dict(self.source())

    def __getattr__(self, name: str) -> Rate:
        return _named(self(), name, "box.stat")


def _named(rates: Mapping[str, Rate], name: str, where: str) -> Rate:
    if name in rates:
        return rates[name]
    raise AttributeError(f"{where} has no {name!r}")
