"""A session of Spark: Java looked for, the data source registered, the packages sent to the executors."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import as_file, files
from typing import Final

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from spark import native
from spark.java import find_java
from spark.package_archive import build_archive

logger = logging.getLogger("spark.session")

_LOCAL: Final[Mapping[str, str]] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
"""What is different where all of Spark runs on this machine."""

_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
"""Where spark-submit tells the programs that it runs how to reach Java."""

_COLLECTOR: Final = "-XX:+UseParallelGC"
"""With G1, which Java chooses where there are two processors, tasks take a tenth longer."""

_JAVA_VARIABLES: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Where users may have chosen a collector: Java does not start with two."""

_WAREHOUSE: Final = "spark.sql.warehouse.dir"
_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"


def start(name: str, master: str | None = None, config: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session, or get the one that there is.

    What spark-submit, `spark-defaults.conf` or the arguments say is respected; where they say nothing, Spark
    is local, counts time in UTC, tells little, and shows its progress if somebody watches.

    Parameters:
        name: The application's name.
        master: Where it runs; None for what is configured, or else `local[*]`.
        config: More configuration; it comes before all other.

    Returns:
        The session, which knows `format("tarantool")`.

    Raises:
        JavaError: If there is no Java that Spark runs on.
    """
    # That is about the functions of pandas on Spark, which nothing here uses.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    native.module.warn_if_stale(logger)
    given = dict(config or {})
    if master is not None:
        given["spark.master"] = master
    _start_java(given)
    settings = SparkConf()
    for key, value in given.items():
        settings.set(key, value)
    settings.setAppName(name)
    settings.setIfMissing("spark.master", "local[*]")
    defaults = {
        _PUSHDOWN: "true",
        "spark.sql.session.timeZone": "UTC",
    }
    if _GATEWAY in os.environ:
        # By itself it tells of every task.
        defaults["spark.log.level"] = "WARN"
    if is_local(settings.get("spark.master") or ""):
        defaults |= _LOCAL
        if not settings.contains(_WAREHOUSE):
            defaults[_WAREHOUSE] = _empty_warehouse()
    for key, value in defaults.items():
        settings.setIfMissing(key, value)
    if (settings.get("spark.master") or "").startswith("local"):
        # Workers are the Python that runs this; on a cluster its path may mean nothing.
        os.environ.setdefault("PYSPARK_PYTHON", settings.get("spark.pyspark.python") or sys.executable)
    session = SparkSession.builder.config(conf=settings).getOrCreate()
    if not is_local(session.conf.get("spark.master") or ""):
        ship(session)
    register(session)
    return session


def is_local(master: str) -> bool:
    """Tell whether executors are threads of the driver, so that their Python is the driver's.

    Parameters:
        master: As in `spark.master`.
    """
    return master == "local" or master.startswith("local[")


def ship(session: SparkSession) -> None:
    """Send this package and those that it needs of its house to the executors, as a zip file.

    Executors then need the third-party libraries only, and have the same code as the driver. What was
    registered before does not know of it.

    Parameters:
        session: Of a cluster; where everything runs in one place it does no harm.

    Raises:
        OSError: If the file cannot be made.
    """
    archive = build_archive()
    if archive is not None:
        session.addArtifacts(str(archive), pyfile=True)


def register(session: SparkSession) -> None:
    """Make `format("tarantool")` known in a session, and have its filters evaluated while reading.

    Parameters:
        session: Any session; where its executors cannot import this package, `ship` comes first.
    """
    from spark.data_source import TarantoolDataSource

    session.conf.set(_PUSHDOWN, "true")
    session.dataSource.register(TarantoolDataSource)


def _empty_warehouse() -> str:
    """A directory for the tables of a session that has none.

    Spark makes one in the working directory as soon as a view has a name. It goes with the process if
    nothing is in it.
    """
    directory = tempfile.mkdtemp(prefix="spark-warehouse-")

    def remove() -> None:
        with suppress(OSError):
            os.rmdir(directory)

    atexit.register(remove)
    return directory


def _start_java(given: Mapping[str, str]) -> None:
    """Start Java if it does not run, quietly; spark-submit has started it already, and is only connected
    to.
    """
    if SparkContext._active_spark_context is not None:
        return
    if _GATEWAY in os.environ:
        SparkContext._ensure_initialized()
        return
    find_java()
    settings = SparkConf(loadDefaults=False)
    for key, value in given.items():
        settings.set(key, value)
    with as_file(files("spark") / "log4j2.properties") as quiet:
        options = [f"-Dlog4j2.configurationFile={quiet.as_uri()}"]
        if not any("GC" in os.environ.get(name, "") for name in _JAVA_VARIABLES):
            options.append(_COLLECTOR)
        settings.setIfMissing("spark.driver.extraJavaOptions", " ".join(options))
        # Spark takes us for a shell, where it is shown unless one says no.
        settings.setIfMissing("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
        # There is no public way to have the configuration that Java finds before a context is made.
        SparkContext._ensure_initialized(conf=settings)
