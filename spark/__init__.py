"""The data pipeline: Spark over snapshots and logs.

`source` presents the files of Tarantool or of this server as Spark tables: `spark.read.format("tarantool")`.
`sink` writes tables to a running server or into a snapshot. The jobs, `python -m spark.NAME`, analyze queues
for their operators; `queues` interprets the queues' spaces, and `report` creates HTML pages. `session` starts
a Spark session.

    import spark

    spark.register(session)
    session.read.format("tarantool").option("space", "queue").load("/var/lib/tarantool")

Importing this package needs neither Java nor PySpark; accessing the names below requires PySpark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["TarantoolDataSource", "register"]

if TYPE_CHECKING:
    from pyspark_tarantool.data_source import TarantoolDataSource
    from pyspark_tarantool.session import register
else:
    _MODULES = {
        "TarantoolDataSource": "pyspark_tarantool.data_source",
        "register": "pyspark_tarantool.session",
    }

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value
