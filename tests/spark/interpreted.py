"""Small queries without compiling: of a few rows Spark takes ten times as long to compile what reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}


@contextmanager
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Have Spark interpret what it would compile, for a while.

    Parameters:
        spark: The session.
    """
    before: dict[str, str | None] = {name: spark.conf.get(name, None) for name in _SETTINGS}
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, earlier)
