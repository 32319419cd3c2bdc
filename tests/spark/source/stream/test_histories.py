"""Snapshot, then changes, of a server under load that is killed: the rows are those that the server had."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.source.stream.histories import History


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_rebuilt_rows_are_those_of_the_server(tmp_path: Path, seed: int) -> None:
    """`python -m tests.spark.source.stream.histories` runs more histories."""
    history = History(tmp_path, seed)
    history.run()
    assert history.counts["compared"] > 5


@pytest.mark.real_tarantool
def test_the_rebuilt_rows_are_those_of_a_real_tarantool(tmp_path: Path) -> None:
    """Its logs have operations in place of rows."""
    history = History(tmp_path, 1, "tarantool")
    history.run()
    assert history.counts["compared"] > 5
