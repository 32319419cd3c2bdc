"""Spark sessions: finds Java, registers the data source and sends the packages to the executors."""

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
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession, is_remote

from pyspark_tarantool import native
from pyspark_tarantool.java import find_java
from pyspark_tarantool.java_messages import filtered_stderr
from pyspark_tarantool.package_archive import build_archive

logger = logging.getLogger("pyspark_tarantool.session")

_LOCAL: Final[Mapping[str, str]] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
"""Settings of sessions that run on this machine only."""

_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
"""spark-submit sets this environment variable, so that programs can connect to its Java."""

_COLLECTOR: Final = "-XX:+UseParallelGC"
"""With G1, Java's choice on two or more processors, tasks take a tenth longer."""

_JAVA_VARIABLES: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Users may have chosen a collector in these variables: Java does not start with two."""

_PYTHON: Final = "PYSPARK_PYTHON"
"""This environment variable, or the setting below, chooses the Python of workers; by default, it is the
program `python3` of the PATH."""

_PYTHON_SETTING: Final = "spark.pyspark.python"

_WAREHOUSE: Final = "spark.sql.warehouse.dir"


def start(name: str, master: str | None = None, config: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session, or return the active one.

    Settings of the arguments, spark-submit and `spark-defaults.conf` are respected. By default, Spark is
    local, uses UTC, logs little, and shows its progress on a terminal.

    Parameters:
        name: The application's name.
        master: The master URL; None for the configured one, by default `local[*]`.
        config: Further settings; they override all others.

    Returns:
        The session, with `format("tarantool")` registered.

    Raises:
        JavaError: If no suitable Java is found.
    """
    # The warning concerns pandas on Spark, which is not used here.
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
    defaults = {"spark.sql.session.timeZone": "UTC"}
    if _GATEWAY in os.environ:
        # The default level logs every task.
        defaults["spark.log.level"] = "WARN"
    if is_local(settings.get("spark.master") or ""):
        defaults |= _LOCAL
        if not settings.contains(_WAREHOUSE):
            defaults[_WAREHOUSE] = _empty_warehouse()
    for key, value in defaults.items():
        settings.setIfMissing(key, value)
    if (settings.get("spark.master") or "").startswith("local"):
        # Local workers use this Python; its path may not exist on a cluster.
        os.environ.setdefault(_PYTHON, settings.get(_PYTHON_SETTING) or sys.executable)
    session = SparkSession.builder.config(conf=settings).getOrCreate()
    if not is_local(session.conf.get("spark.master") or ""):
        ship(session)
    register(session)
    return session


def is_running() -> bool:
    """Whether this process has a session already, started by whichever thread."""
    return SparkContext._active_spark_context is not None


def is_local(master: str) -> bool:
    """Whether executors are threads of the driver, so that they use the driver's Python.

    Parameters:
        master: As in `spark.master`.
    """
    return master == "local" or master.startswith("local[")


def ship(session: SparkSession) -> None:
    """Send this package and the packages of this project that it needs to the executors, as a zip file.

    Compiled modules are sent beside it, for executors with the driver's version of Python and its platform.

    Executors then need the third-party libraries only, and run the same code as the driver. Data sources
    registered earlier do not use the file.

    Parameters:
        session: The session; for a local one, this is harmless.

    Raises:
        OSError: If a file cannot be created.
    """
    for file in build_archive():
        is_archive = file.suffix == ".zip"
        session.addArtifacts(str(file), pyfile=is_archive, file=not is_archive)


def register(session: SparkSession) -> None:
    """Register `format("tarantool")` in a session.

    Spark finds the data source by itself where the workers' Python has this package. Registering it makes the
    workers of a session on this machine run the session's Python, unless another one was chosen.

    Parameters:
        session: The session; call `ship` first if its executors cannot import this package.
    """
    from pyspark_tarantool.data_source import TarantoolDataSource

    if not is_remote():
        context = session.sparkContext
        is_chosen = _PYTHON in os.environ or context.getConf().contains(_PYTHON_SETTING)
        if (context.master or "").startswith("local") and not is_chosen:
            context.pythonExec = sys.executable
    session.dataSource.register(TarantoolDataSource)


def _empty_warehouse() -> str:
    """Create a warehouse directory for a session without one; if empty, it is removed at exit.

    Otherwise, Spark creates one in the working directory for the first named view.
    """
    directory = tempfile.mkdtemp(prefix="spark-warehouse-")

    def remove() -> None:
        with suppress(OSError):
            os.rmdir(directory)

    atexit.register(remove)
    return directory


def _start_java(given: Mapping[str, str]) -> None:
    """Start Java with little logging, unless it runs; under spark-submit, connect to the running one."""
    if SparkContext._active_spark_context is not None:
        return
    if _GATEWAY in os.environ:
        SparkContext._ensure_initialized()
        return
    find_java()
    settings = SparkConf(loadDefaults=False)
    for key, value in given.items():
        settings.set(key, value)
    with as_file(files("pyspark_tarantool") / "log4j2.properties") as quiet:
        options = [f"-Dlog4j2.configurationFile={quiet.as_uri()}"]
        if not any("GC" in os.environ.get(name, "") for name in _JAVA_VARIABLES):
            options.append(_COLLECTOR)
        settings.setIfMissing("spark.driver.extraJavaOptions", " ".join(options))
        # Spark assumes a shell, which shows progress by default.
        settings.setIfMissing("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
        messages = filtered_stderr()
        try:
            gateway = launch_gateway(settings, {"stderr": messages})  # type: ignore[no-untyped-call]
        finally:
            os.close(messages)
        # No public function loads Java's configuration before a context is created.
        SparkContext._ensure_initialized(gateway=gateway, conf=settings)
