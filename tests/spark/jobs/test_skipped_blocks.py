"""What was skipped is counted from the reports that tasks leave."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark_tarantool.jobs.skipped_blocks import SkippedBlocks


def test_a_place_that_was_read_twice_counts_once(tmp_path: Path) -> None:
    place = {"file": "/d/1.xlog", "offset": 7, "bytes": 100, "reason": "wrong checksum of a block"}
    for number, places in enumerate([[place], [place, {**place, "offset": 500, "bytes": 20}]]):
        lines = "".join(json.dumps(each) + "\n" for each in places)
        (tmp_path / f"{number}.json").write_text(lines)
    assert SkippedBlocks.read(str(tmp_path), most=1) == (
        2,
        120,
        ("/d/1.xlog: wrong checksum of a block at offset 7",),
    )


def test_nothing_was_skipped(tmp_path: Path) -> None:
    assert SkippedBlocks.read(str(tmp_path / "none")) == (0, 0, ())
