"""`format("tarantool")` in sessions of any kind, as users type it; nothing of this project is imported."""

from __future__ import annotations

import errno
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pyspark
import pytest

from tests.programs import REPOSITORY, require_program
from tests.spark.session.test_local_cluster import spark_home
from tests.storage.databases import jobs_box, save

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

QUERY = (
    'print(*spark.read.format("tarantool").option("space", "jobs").load({path!r}).select("status").collect())'
)
ROWS = "Row(status='taken') Row(status='ready')"

SESSION = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.master({master!r}).config("spark.ui.enabled", False).getOrCreate()
"""
REMOTE_SESSION = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote("local[1]").getOrCreate()
"""
REGISTERED = """
import pyspark_tarantool

pyspark_tarantool.register(spark)
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A database with a space `jobs` of two rows."""
    require_program("java", "default-jre-headless")
    directory = tmp_path / "data"
    directory.mkdir()
    save(jobs_box([1, "taken"], [2, "ready"]), directory, {})
    return directory


def environment(**more: str) -> dict[str, str]:
    """A shell in which this Python's virtual environment is active and has the package on its path."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**inherited, "PATH": path, "PYTHONPATH": str(REPOSITORY), "SPARK_LOCAL_IP": "127.0.0.1", **more}


def run(program: str, directory: Path, variables: Mapping[str, str], *prefix: str | Path) -> str:
    """Run a program as a script, and return what it printed."""
    script = directory / "script.py"
    script.write_text(program)
    done = subprocess.run(
        [*(prefix or (sys.executable,)), script],
        cwd=directory,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_in_a_script(data: Path, tmp_path: Path) -> None:
    program = SESSION.format(master="local[1]") + QUERY.format(path=str(data))
    assert ROWS in run(program, tmp_path, environment())


def test_under_spark_submit(data: Path, tmp_path: Path) -> None:
    program = SESSION.format(master="local[1]") + QUERY.format(path=str(data))
    submit = Path(pyspark.__path__[0], "bin", "spark-submit")
    assert ROWS in run(program, tmp_path, environment(), submit)


def test_in_the_shell(data: Path, tmp_path: Path) -> None:
    """On a terminal, where the shell makes `spark`."""
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        [Path(pyspark.__path__[0], "bin", "pyspark"), "--master", "local[1]"],
        cwd=tmp_path,
        env=environment(TERM="dumb"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, f"{QUERY.format(path=str(data))}\nexit()\n".encode())
    written = b""
    try:
        while piece := os.read(ours, 65536):
            written += piece
    except OSError as error:  # how Linux says that the other side is closed
        if error.errno != errno.EIO:
            raise
    finally:
        os.close(ours)
        shell.wait()
    assert ROWS.encode() in written, written.decode()


def test_on_executors_in_processes_of_their_own(data: Path, tmp_path: Path) -> None:
    program = SESSION.format(master="local-cluster[2,1,1024]") + QUERY.format(path=str(data))
    assert ROWS in run(program, tmp_path, environment(SPARK_HOME=str(spark_home(tmp_path))))


@pytest.mark.skipif(find_spec("grpc") is None, reason="Spark Connect needs pyspark[connect]")
@pytest.mark.parametrize("registered", ["", REGISTERED])
def test_over_spark_connect(data: Path, tmp_path: Path, registered: str) -> None:
    program = REMOTE_SESSION + registered + QUERY.format(path=str(data))
    assert ROWS in run(program, tmp_path, environment())


def test_registered_the_workers_run_the_sessions_python(data: Path, tmp_path: Path) -> None:
    """Without an active virtual environment, they would run another `python3`, which may lack the package."""
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\nexit 7\n")
    other.chmod(0o755)
    variables = environment(PATH=os.pathsep.join([str(other.parent), os.environ.get("PATH", os.defpath)]))
    program = SESSION.format(master="local[1]") + REGISTERED + QUERY.format(path=str(data))
    assert ROWS in run(program, tmp_path, variables)
