"""The pairs of a map during an update, in the order in which Tarantool writes them."""

from __future__ import annotations

from collections.abc import Iterator

from iproto_server.box.update.document import Documents
from iproto_server.box.update.node import Part


class MapRun:
    """A pair that operations have touched, and the untouched pairs that follow it.

    Attributes:
        key: the key of the touched pair; None if that pair was deleted, or none of the run was touched yet.
        value: its value.
        start: the first untouched pair.
        end: the end of the untouched pairs.
    """

    __slots__ = ("end", "key", "start", "value")

    def __init__(self, key: str | None, value: Part, start: int, end: int) -> None:
        self.key = key
        self.value = value
        self.start = start
        self.end = end


class MapPairs:
    """Touched pairs first, the latest before the others, then the untouched ones.

    Parameters:
        raw: the packed map.
        documents: the unchanged fields of the request.

    Attributes:
        count: the number of pairs.
    """

    __slots__ = ("_pairs", "_places", "_runs", "_touched", "count")

    def __init__(self, raw: bytes, documents: Documents) -> None:
        self._pairs, self._places = documents.map(raw)
        self.count = len(self._pairs)
        self._touched: dict[str, MapRun] = {}
        # The latest first.
        self._runs: list[MapRun] = [MapRun(None, b"", 0, self.count)] if self.count else []

    def touch(self, key: str) -> MapRun | None:
        """Bring a pair to the front and return its run; None if the map has no such key."""
        run = self._touched.get(key)
        if run is not None:
            return run
        places = self._places.get(key)
        if places is None:
            return None
        for run in self._runs:
            for place in places:
                if run.start <= place < run.end:
                    return self._cut(run, place, key)
        return None

    def add(self, key: str, value: Part) -> None:
        """Add a pair with a new key at the front."""
        self._add_run(key, value, 0, 0)
        self.count += 1

    def delete(self, run: MapRun) -> None:
        """Remove the touched pair of a run."""
        if run.key is not None:
            del self._touched[run.key]
            run.key, run.value = None, b""
            self.count -= 1

    def touched(self) -> Iterator[tuple[str, Part]]:
        """Return the touched pairs."""
        return ((run.key, run.value) for run in self._runs if run.key is not None)

    def untouched(self) -> Iterator[tuple[bytes, bytes]]:
        """Return the other pairs, packed."""
        return (pair for run in self._runs for pair in self._pairs[run.start : run.end])

    def _cut(self, run: MapRun, place: int, key: str) -> MapRun:
        value = self._pairs[place][1]
        if run.key is None and place == run.start:
            run.key, run.value, run.start = key, value, place + 1
            self._touched[key] = run
            return run
        end, run.end = run.end, place
        return self._add_run(key, value, place + 1, end)

    def _add_run(self, key: str, value: Part, start: int, end: int) -> MapRun:
        run = self._touched[key] = MapRun(key, value, start, end)
        self._runs.insert(0, run)
        return run
