"""`box.stat`: numbers of requests, in total and per second.

Source: Tarantool reference, "Submodule box.stat".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

Rate = dict[str, int]
"""`total` since the start, `rps` per second in the last five seconds, `current` for things in progress."""


class NetworkStatistics:
    """`box.stat.net`."""

    def __init__(self) -> None:
        self.source: Callable[[], Mapping[str, Rate]] = dict

    def __call__(self) -> dict[str, Rate]:
        """By name: CONNECTIONS, REQUESTS, SENT and RECEIVED (bytes), and so on."""
        return dict(self.source())

    def thread(self) -> list[dict[str, Rate]]:
        """The same for each network thread; there is one."""
        return [self()]

    def __getattr__(self, name: str) -> Rate:
        return _named(self(), name, "box.stat.net")


class Statistics:
    """`box.stat`: requests of clients, by type.

    Unlike Tarantool's, it does not count the operations of procedures.

    Attributes:
        net: `box.stat.net`.
        source: returns the numbers; set by the server.
        reset: resets the counters; set by the server.
    """

    def __init__(self) -> None:
        self.net = NetworkStatistics()
        self.source: Callable[[], Mapping[str, Rate]] = dict
        self.reset: Callable[[], None] = lambda: None

    def __call__(self) -> dict[str, Rate]:
        """By request type: SELECT, INSERT, CALL and so on, and ERROR for all failed requests."""
        return dict(self.source())

    def __getattr__(self, name: str) -> Rate:
        return _named(self(), name, "box.stat")


def _named(rates: Mapping[str, Rate], name: str, where: str) -> Rate:
    if name in rates:
        return rates[name]
    raise AttributeError(f"{where} has no {name!r}")
