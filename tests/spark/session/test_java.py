"""Java is looked for before Spark is started; what is wrong with it is told in a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_tarantool.java import JavaError, find_java

pytestmark = pytest.mark.process

_ADVICE = "apt-get install default-jre-headless"


def java(directory: Path, script: str) -> dict[str, str]:
    """An environment with a program that is taken for Java."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": f"{program.parent}{os.pathsep}/bin"}


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ('java version "25" 2025-09-16 LTS', 25),
    ],
)
def test_a_java_that_is_new_enough_is_found(tmp_path: Path, line: str, version: int) -> None:
    """On the path, or where JAVA_HOME says, which comes first as it does for Spark."""
    environment = java(tmp_path / "one", f"echo '{line}' >&2")
    found = find_java(environment)
    assert found == (str(tmp_path / "one/bin/java"), version)
    java(tmp_path / "home", "echo 'openjdk version \"18\"' >&2")
    assert find_java({**environment, "JAVA_HOME": str(tmp_path / "home")}).version == 18


def test_no_java_is_told_with_how_to_get_one(tmp_path: Path) -> None:
    """The words are a sentence."""
    with pytest.raises(JavaError, match="needs Java 17 or newer, and there is none") as caught:
        find_java({"PATH": str(tmp_path)})
    assert _ADVICE in str(caught.value)
    with pytest.raises(JavaError, match="there is no Java at JAVA_HOME=/nowhere"):
        find_java({"PATH": os.environ["PATH"], "JAVA_HOME": "/nowhere"})


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'openjdk version \"1.8.0_292\"' >&2", "is Java 8: "),
        ("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "is Java 11: "),
        ("exit 3", "does not run .exit status 3.: "),
        ("echo I am a teapot", "prints no version, so it is not Java: "),
    ],
)
def test_a_java_that_does_not_do_is_told(tmp_path: Path, script: str, words: str) -> None:
    """Which one it is, what is wrong, and how to get another."""
    with pytest.raises(JavaError, match=words) as caught:
        find_java(java(tmp_path, script))
    assert _ADVICE in str(caught.value)


def test_a_session_is_not_started_without_java() -> None:
    """Instead of what Spark's scripts would say."""
    script = "from pyspark_tarantool import session; session.start('tests')"
    environment = {**os.environ, "JAVA_HOME": "/nowhere"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "JavaError: there is no Java at JAVA_HOME=/nowhere" in done.stderr.splitlines()[-1]
