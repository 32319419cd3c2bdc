"""Executors in processes of their own, whose Python has not got this package: it is sent to them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import pyspark
import pytest

from tests.programs import REPOSITORY, require_program
from tests.spark.sink.rows import columns
from tests.spark.sink.test_snapshot_writer import load

_ROWS = 6_000


def python_without_package(directory: Path) -> Path:
    """A Python that has the libraries but not what is installed for development: it does not read `.pth`."""
    program = directory / "python-without-package"
    libraries = os.pathsep.join(dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib")))
    path = f"{libraries}${{PYTHONPATH:+:$PYTHONPATH}}"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" -S -P "$@"\n')
    program.chmod(0o755)
    return program


def spark_home(directory: Path) -> Path:
    """Spark where its cluster may write: it keeps the executors' logs beside its programs."""
    home = directory / "home"
    home.mkdir()
    for entry in Path(pyspark.__path__[0]).iterdir():
        (home / entry.name).symlink_to(entry)
    return home


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_executors_read_side_by_side_with_what_was_sent_to_them(tmp_path: Path) -> None:
    """Each row once, by both, as they are."""
    require_program("java", "default-jre-headless")
    python = python_without_package(tmp_path)
    data = tmp_path / "data"
    rows = [(number, sha256(str(number).encode()).hexdigest()) for number in range(_ROWS)]
    load({"path": str(data), "space": "things"}, columns("id long, payload string"), rows)
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": str(python),
        "SPARK_HOME": str(spark_home(tmp_path)),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    there = subprocess.run(
        [python, "-c", "import pyspark_tarantool"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "No module named 'pyspark_tarantool'" in there.stderr
    done = subprocess.run(
        [sys.executable, REPOSITORY / "tests/spark/session/cluster_job.py", data],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    parts = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(parts) >= 4
    assert len({part["executor"] for part in parts}) == 2
    assert all("tarantool-for-spark.zip" in part["package"] for part in parts)
    assert [sum(part[name] for part in parts) for name in ("rows", "ids", "payloads")] == [
        _ROWS,
        sum(number for number, _ in rows),
        sum(crc32(payload.encode()) for _, payload in rows),
    ]
