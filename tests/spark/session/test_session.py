"""The session that jobs and tests start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.programs import REPOSITORY, require_program

_IMPORT = """
import sys, spark
assert "pyspark" not in sys.modules
assert spark.register is not None
assert "pyspark" in sys.modules
"""


def test_a_session_counts_time_in_utc(spark: SparkSession) -> None:
    """Times are read as the server means them."""
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_importing_the_package_needs_no_pyspark() -> None:
    """Whoever only looks at the package does not pay for Spark."""
    subprocess.run([sys.executable, "-c", _IMPORT], check=True)


_COLLECTORS = """
from pyspark_tarantool import session

started = session.start("collectors", "local[1]")
beans = started.sparkContext._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
print(*[bean.getName() for bean in beans], sep=", ")
started.stop()
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("chosen", "collectors"),
    [
        pytest.param("", "PS MarkSweep, PS Scavenge", id="nobody has chosen"),
        pytest.param("-XX:+UseSerialGC", "Copy, MarkSweepCompact", id="the user has chosen"),
    ],
)
def test_java_collects_garbage_while_nothing_else_runs_unless_told_otherwise(
    chosen: str, collectors: str
) -> None:
    """Java would refuse to start with two choices."""
    require_program("java", "default-jre-headless")
    environment = {**os.environ, "JAVA_TOOL_OPTIONS": chosen, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-c", _COLLECTORS], env=environment, capture_output=True, text=True, check=False
    )
    assert ", ".join(sorted(done.stdout.strip().split(", "))) == collectors, done.stderr


_JOB = """
from pyspark_tarantool import session

started = session.start("job")
started.range(5).createOrReplaceTempView("numbers")
print(started.sql("select sum(id) from numbers").first()[0], started.sparkContext.master)
print(started.conf.get("spark.sql.session.timeZone"), started.conf.get("spark.ui.enabled"))
started.stop()
"""


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_what_spark_submit_says_counts(tmp_path: Path) -> None:
    """The rest is as in other sessions; nothing is left in the working directory."""
    require_program("java", "default-jre-headless")
    job = tmp_path / "job.py"
    job.write_text(_JOB)
    submit = Path(pyspark.__path__[0], "bin", "spark-submit")
    options = ["--master", "local[1]", "--conf", "spark.sql.session.timeZone=Asia/Tokyo"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [submit, *options, job], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-2:] == ["10 local[1]", "Asia/Tokyo false"], done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["job.py"]
