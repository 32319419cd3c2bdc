"""Delays of AUTH, which grow with the number of failures.

Failures are counted per pair of an address and a user name, existing or not, so that clients behind one proxy
do not delay each other. Failures that cost no time are also counted per address, so that trying many names
costs time as well. Failures expire one after another.

A password is checked after the delay, which has an upper limit: a client with the right password always gets
in, whatever others do.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

FREE_FAILURES: Final = 5
"""Failures of an address and a user without a delay."""
FREE_FAILURES_OF_ADDRESS: Final = 50
"""Failures of an address without a delay, for all names together."""
FIRST_DELAY: Final = 0.1
"""Seconds of the first delay; each further one is twice as long."""
LONGEST_DELAY: Final = 1.0
"""Maximum delay in seconds."""
FORGIVEN_AFTER: Final = 10.0
"""Seconds after which one failure expires."""
KEPT_FAILURES: Final = 10
"""Maximum number of counted failures beyond the free ones."""
MAX_ENTRIES: Final = 10_000
"""Maximum number of remembered pairs and addresses; those with the oldest attempts are dropped first."""
NAME_SIZE: Final = 64
"""Maximum characters of a user name that are kept, because clients may send names of any length."""

_Key = tuple[str, str | None]


class Attempt:
    """One AUTH. It counts as a failure until `succeeded` is called.

    Attributes:
        delay: its delay in seconds.
    """

    __slots__ = ("_delays", "_keys", "delay")

    def __init__(self, delays: LoginDelays, keys: tuple[_Key, ...], delay: float) -> None:
        self._delays = delays
        self._keys = keys
        self.delay = delay

    def succeeded(self) -> None:
        """Remove the failure, because the password was right."""
        self._delays.take_back(self._keys)


class LoginDelays:
    """Counts failures, and computes the delays of attempts.

    Parameters:
        now: returns steady time in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._failures: OrderedDict[_Key, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        """The number of remembered pairs and addresses."""
        return len(self._failures)

    def begin(self, address: str, user: str) -> Attempt:
        """Begin an attempt to log in, and compute its delay.

        Parameters:
            address: the client's address, from `address_of`.
            user: the user name, existing or not.
        """
        pair, everybody = (address, user[:NAME_SIZE]), (address, None)
        of_pair, of_address = self._count(pair), self._count(everybody)
        delay = self.delay(address, user)
        keys: tuple[_Key, ...] = (pair,)
        self._remember(pair, of_pair + 1, FREE_FAILURES)
        if of_pair < FREE_FAILURES:
            keys = (pair, everybody)
            self._remember(everybody, of_address + 1, FREE_FAILURES_OF_ADDRESS)
        return Attempt(self, keys, delay)

    def delay(self, address: str, user: str) -> float:
        """Return the delay in seconds that an attempt would have now.

        Parameters:
            address: the client's address, from `address_of`.
            user: the user name, existing or not.
        """
        of_pair, of_address = self._count((address, user[:NAME_SIZE])), self._count((address, None))
        return max(_delay(of_pair, FREE_FAILURES), _delay(of_address, FREE_FAILURES_OF_ADDRESS))

    def take_back(self, keys: tuple[_Key, ...]) -> None:
        """Remove one failure of each key."""
        for key in keys:
            count = self._count(key) - 1
            if count > 0:
                self._failures[key] = count, self.now()
            else:
                self._failures.pop(key, None)

    def _count(self, key: _Key) -> float:
        """The failures that have not expired."""
        count, when = self._failures.get(key, (0.0, 0.0))
        return max(0.0, count - (self.now() - when) / FORGIVEN_AFTER)

    def _remember(self, key: _Key, count: float, free: int) -> None:
        self._failures[key] = min(count, free + KEPT_FAILURES), self.now()
        self._failures.move_to_end(key)
        if len(self._failures) > MAX_ENTRIES:
            self._failures.popitem(last=False)


def _delay(failures: float, free: int) -> float:
    """The delay in seconds after a number of failures."""
    # A partly expired failure counts. (Rounded, because sums of fractions are inexact.)
    beyond = math.ceil(round(failures, 6)) - free
    return 0.0 if beyond < 0 else float(min(LONGEST_DELAY, FIRST_DELAY * 2**beyond))


def address_of(peer: str | None) -> str:
    """Return the address under which a client's attempts are counted.

    A client usually has a whole IPv6 network of 64 bits, so that counts as one address. So do all clients of
    unix sockets.

    Parameters:
        peer: result of `box.session.peer()`: HOST:PORT, [IPV6]:PORT or unix/:.
    """
    host = (peer or "unix/:").rpartition(":")[0].strip("[]").partition("%")[0]
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{ipaddress.IPv6Address(int(address) >> 64 << 64)}/64"
