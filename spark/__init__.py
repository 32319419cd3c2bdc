"""The data pipeline: Spark over snapshots and logs.

The folder `spark/` of the repository is installed as `pyspark_tarantool`: a package named `spark` would hide
others of that name, or be hidden by them, and Spark looks for data sources in packages named `pyspark_…`.

`source` presents the files of Tarantool or of this server as Spark tables: `spark.read.format("tarantool")`.
`sink` writes tables to a running server or into a snapshot. The jobs, `python -m pyspark_tarantool.NAME`,
analyze queues for their operators; `queues` interprets the queues' spaces, and `report` creates HTML pages.
`session` starts a Spark session.

    from pyspark_tarantool import start

    spark = start("look")
    spark.read.format("tarantool").option("space", "queue").load("/var/lib/tarantool")

Importing this package needs neither Java nor PySpark; accessing the names below requires PySpark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["DefaultSource", "TarantoolDataSource", "register", "start"]

if TYPE_CHECKING:
    from pyspark_tarantool.data_source import DefaultSource, TarantoolDataSource
    from pyspark_tarantool.session import register, start
else:
    _MODULES = {
        "DefaultSource": "pyspark_tarantool.data_source",
        "TarantoolDataSource": "pyspark_tarantool.data_source",
        "register": "pyspark_tarantool.session",
        "start": "pyspark_tarantool.session",
    }

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value
