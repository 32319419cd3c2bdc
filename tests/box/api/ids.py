"""The ids of rows."""

from __future__ import annotations

from collections.abc import Sequence

from iproto_server import Tuple


def ids(found: Sequence[Tuple]) -> list[int]:
    return [row[0] for row in found]
