"""How long an AUTH waits before its password is looked at: the longer, the more wrong ones there were.

Failures are counted for each pair of an address and a user's name, known or not, so that clients behind one
proxy are not delayed because of each other's mistakes. They are counted for the address too as long as they
are free, so that trying many names costs time as well. Time forgives failures, one after another.

A password is checked after the wait, right or wrong, and the wait has an upper limit: whoever knows the
password gets in, whatever others do.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

FREE_FAILURES: Final = 5
"""So many failures of an address and a user cost no time."""
FREE_FAILURES_OF_ADDRESS: Final = 50
"""So many of these free ones may come from one address, for all names together."""
FIRST_DELAY: Final = 0.1
"""Seconds that the next attempt waits; each further one twice as long as the one before."""
LONGEST_DELAY: Final = 1.0
"""Seconds that an attempt waits at most."""
FORGIVEN_AFTER: Final = 10.0
"""Seconds in which one failure is forgiven."""
KEPT_FAILURES: Final = 10
"""So many failures beyond the free ones are remembered."""
MAX_ENTRIES: Final = 10_000
"""So many pairs and addresses are remembered; those with the oldest attempts make way for others."""
NAME_SIZE: Final = 64
"""Characters of a user's name that count: strangers choose it, of any length."""

_Key = tuple[str, str | None]


class Attempt:
    """One AUTH. It counts as a failure until `succeeded` is called.

    Attributes:
        delay: seconds that it has to wait.
    """

    __slots__ = ("_delays", "_keys", "delay")

    def __init__(self, delays: LoginDelays, keys: tuple[_Key, ...], delay: float) -> None:
        self._delays = delays
        self._keys = keys
        self.delay = delay

    def succeeded(self) -> None:
        """The password was right: the attempt was no failure."""
        self._delays.take_back(self._keys)


class LoginDelays:
    """The failures that are remembered, and the delays that follow from them.

    Parameters:
        now: steady time in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._failures: OrderedDict[_Key, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        """How many pairs and addresses are remembered."""
        return len(self._failures)

    def begin(self, address: str, user: str) -> Attempt:
        """An attempt to log in: how long does it wait?

        Parameters:
            address: where it comes from, as of `address_of`.
            user: the name; there may be no such user.
        """
        pair, everybody = (address, user[:NAME_SIZE]), (address, None)
        of_pair, of_address = self._count(pair), self._count(everybody)
        delay = max(_delay(of_pair, FREE_FAILURES), _delay(of_address, FREE_FAILURES_OF_ADDRESS))
        keys: tuple[_Key, ...] = (pair,)
        self._remember(pair, of_pair + 1, FREE_FAILURES)
        if of_pair < FREE_FAILURES:
            keys = (pair, everybody)
            self._remember(everybody, of_address + 1, FREE_FAILURES_OF_ADDRESS)
        return Attempt(self, keys, delay)

    def take_back(self, keys: tuple[_Key, ...]) -> None:
        """Forget one failure of each of these."""
        for key in keys:
            count = self._count(key) - 1
            if count > 0:
                self._failures[key] = count, self.now()
            else:
                self._failures.pop(key, None)

    def _count(self, key: _Key) -> float:
        """The failures that are not forgiven yet."""
        count, when = self._failures.get(key, (0.0, 0.0))
        return max(0.0, count - (self.now() - when) / FORGIVEN_AFTER)

    def _remember(self, key: _Key, count: float, free: int) -> None:
        self._failures[key] = min(count, free + KEPT_FAILURES), self.now()
        self._failures.move_to_end(key)
        if len(self._failures) > MAX_ENTRIES:
            self._failures.popitem(last=False)


def _delay(failures: float, free: int) -> float:
    """Seconds to wait after so many failures, of which so many are free."""
    # One that is not wholly forgiven counts. (Rounded, because sums of fractions are inexact.)
    beyond = math.ceil(round(failures, 6)) - free
    return 0.0 if beyond < 0 else float(min(LONGEST_DELAY, FIRST_DELAY * 2**beyond))


def address_of(peer: str | None) -> str:
    """The address that attempts of a client are counted for.

    A client has usually a whole IPv6 network of 64 bits, so those are one address. All clients of unix
    sockets are one, too.

    Parameters:
        peer: as `box.session.peer()` has it: HOST:PORT, [IPV6]:PORT or unix/:.
    """
    host = (peer or "unix/:").rpartition(":")[0].strip("[]").partition("%")[0]
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{ipaddress.IPv6Address(int(address) >> 64 << 64)}/64"
