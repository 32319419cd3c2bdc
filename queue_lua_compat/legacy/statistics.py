"""The legacy queue's counters: calls per tube since the start."""

from __future__ import annotations

from iproto_server import Box, Tally


class Statistics:
    """Counters per tube. A rollback undoes what its transaction counted.

    Parameters:
        box: the box.
        counters: the storage of the counters.

    Attributes:
        counters: the counters by their names, by the space's label and the tube.
    """

    def __init__(self, box: Box, counters: dict[tuple[str, str], dict[str, int]]) -> None:
        self.counters = counters
        self._tally: Tally[tuple[str, str, str]] = Tally(box, lambda key, amount: self.add(*key, amount))

    def count(self, label: str, tube: str, name: str, amount: int = 1) -> None:
        """Add to a counter, as a part of the running transaction."""
        self._tally.count((label, tube, name), amount)

    def add(self, label: str, tube: str, name: str, amount: int = 1) -> None:
        """Add to a counter."""
        counters = self.counters.get((label, tube))
        if counters is None:
            counters = self.counters[label, tube] = {}
        number = counters.get(name, 0) + amount
        if number:
            counters[name] = number
        else:
            counters.pop(name, None)
            if not counters:
                del self.counters[label, tube]
