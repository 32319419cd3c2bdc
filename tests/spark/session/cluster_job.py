"""A job for a cluster: reads a space, and tells what each partition had and where it was read.

    python tests/spark/session/cluster_job.py DIRECTORY

It prints a JSON object for each partition. The package is not looked for beside this file: on the driver it
is installed, and to executors it is sent.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pandas as pd

from pyspark_tarantool import session


def tell(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """What a partition has, which process read it, and where that has the package from."""
    import os
    from zlib import crc32

    import pyspark_tarantool

    found: dict[str, Any] = {"rows": 0, "ids": 0, "payloads": 0}
    for frame in frames:
        found["rows"] += len(frame)
        found["ids"] += int(frame["id"].sum())
        found["payloads"] += sum(crc32(payload.encode()) for payload in frame["payload"])
    # Each executor has one process that all its Python workers come from.
    found |= {"executor": os.getppid(), "package": pyspark_tarantool.__file__}
    yield pd.DataFrame([found])


def main(directory: str) -> None:
    """Run it on a cluster of two executors on this machine."""
    started = session.start(
        "cluster",
        "local-cluster[2,1,1024]",
        {
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "100s",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.ui.enabled": "false",
        },
    )
    try:
        options = {"mode": "snapshot", "space": "things", "partition_bytes": "65536", "unsigned": "bigint"}
        table = started.read.format("tarantool").options(**options).load(directory)
        found = "rows long, ids long, payloads long, executor long, package string"
        for row in table.mapInPandas(tell, found).collect():
            print(json.dumps(row.asDict()))
    finally:
        started.stop()


if __name__ == "__main__":
    main(sys.argv[1])
