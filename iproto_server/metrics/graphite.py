"""Samples of counters for Graphite: "name value time" lines, sent to carbon over TCP or UDP.

Monitoring must never harm the server: `graphite_sender` drops samples that the receiver does not take in
time.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections.abc import Callable, Iterable
from functools import lru_cache

from iproto_server.config.address import Address
from iproto_server.metrics.graphite_sender import Sample, Sender, TcpSender, UdpSender

logger = logging.getLogger("iproto_server.graphite")


class GraphiteReporter:
    """Sends a sample of the counters every interval.

    Parameters:
        address: the receiver's host and port.
        protocol: "tcp" or "udp".
        prefix: prefix of all names; a dot is added.
        interval: seconds between samples.
        collect: returns the counters as (name, value); called on the loop, so it must be quick.
        clock: returns the wall clock time in seconds, for the samples.
        sender: sends the samples; None: the sender for `protocol`.
    """

    def __init__(
        self,
        address: Address,
        protocol: str,
        prefix: str,
        interval: float,
        collect: Callable[[], Iterable[tuple[str, int | float]]],
        *,
        clock: Callable[[], float] = time.time,
        sender: Sender | None = None,
    ) -> None:
        self._prefix = prefix
        self._interval = interval
        self._collect = collect
        self._clock = clock
        self._sender = sender or (UdpSender(address) if protocol == "udp" else TcpSender(address))
        self._timer: asyncio.TimerHandle | None = None
        self._collect_failed = False
        self.sent = 0
        """Samples handed to the kernel or to the connection's buffer."""
        self.dropped = 0
        """Samples dropped because the receiver was unreachable or slow, or `collect` raised."""

    def start(self) -> None:
        """Connect and start sending, on the running loop."""
        self._sender.start()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(first_delay(self._clock(), self._interval), self._on_timer, loop)

    def tick(self) -> bool:
        """Take one sample and send it now.

        Returns:
            Whether it was sent; a dropped one is counted in `dropped`.
        """
        lines = self._take()
        if lines is None or not self._sender.send(lines):
            self.dropped += 1
            return False
        self.sent += 1
        return True

    async def stop(self, grace: float = 1.0) -> None:
        """Send a last sample and close the connection.

        Parameters:
            grace: maximum duration in seconds; data not read by then is lost.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.tick()
        await self._sender.stop(grace)

    def _on_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        self.tick()
        self._timer = loop.call_later(next_delay(self._clock(), self._interval), self._on_timer, loop)

    def _take(self) -> Sample | None:
        now = int(self._clock())
        try:
            lines = [
                line
                for name, value in self._collect()
                if (line := format_line(self._prefix, name, value, now))
            ]
        except BaseException:
            # Counters may come from an application's code, whose errors must not end the server.
            if not self._collect_failed:
                logger.exception("collecting counters for graphite failed")
            self._collect_failed = True
            return None
        self._collect_failed = False
        return lines


def first_delay(now: float, interval: float) -> float:
    """Return the seconds from wall clock time `now` to the first sample, in the middle of an interval.

    Graphite keeps one value per step. With a little jitter, samples near the edge of a step could fall twice
    into one step and miss the next, so they are taken in the middle.
    """
    return (0.5 - now / interval) % 1.0 * interval


def next_delay(now: float, interval: float) -> float:
    """Return the seconds from a sample at about wall clock time `now` to the next, with drift corrected."""
    delay = first_delay(now, interval)
    return delay if delay >= interval / 2 else delay + interval


def format_line(prefix: str, name: str, value: int | float, now: int) -> bytes:
    """Format one counter for carbon.

    Parameters:
        prefix: prefix of the name; a dot is added.
        name: the counter's name; characters that carbon cannot store are replaced.
        value: the counter's value.
        now: seconds since the epoch.

    Returns:
        The line with its newline; b"" for NaN and infinities, which Graphite cannot store.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            return b""
        if value.is_integer() and abs(value) < 1e15:
            value = int(value)
    return b"%s %s %d\n" % (metric_path(prefix, name), str(value + 0).encode(), now)


@lru_cache(maxsize=4096)
def metric_path(prefix: str, name: str) -> bytes:
    """Return the full name of a counter: letters, digits, "_" and "-" in parts separated by dots.

    Carbon makes a directory of each part, so "/" and empty parts ("..") are removed, and a part is limited to
    the length of a file name.
    """
    parts = [re.sub(r"[^A-Za-z0-9_-]", "_", part)[:200] for part in name.split(".") if part]
    return ".".join([prefix, *(parts or ["_"])]).encode("ascii")
