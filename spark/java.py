"""Finds the Java that Spark needs, or explains how to install it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from pyspark_tarantool.source.errors import SourceError

OLDEST: Final = 17
"""The oldest Java that Spark 4 runs on (https://spark.apache.org/docs/latest/, "Downloading")."""

_ADVICE: Final = "install it with: apt-get install default-jre-headless"
_VERSION: Final = re.compile(r'version "(?:1\.)?([0-9]+)')
_TIMEOUT: Final = 60.0
"""Seconds that `java -version` may take, on a busy machine."""


class JavaError(SourceError):
    """No suitable Java was found."""


class Java(NamedTuple):
    """A Java installation.

    Attributes:
        path: The program.
        version: Its major version: 8, 17.
    """

    path: str
    version: int


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Find the Java that Spark will start, as Spark looks for it: JAVA_HOME first, then PATH.

    Parameters:
        environment: The environment variables.

    Returns:
        A sufficiently new Java.

    Raises:
        JavaError: If there is none, it does not run, or it is too old; the message explains the remedy.
    """
    home = environment.get("JAVA_HOME")
    if home:
        path = str(Path(home, "bin", "java"))
        if not os.access(path, os.X_OK):
            raise JavaError(
                f"there is no Java at JAVA_HOME={home}: correct that variable, or unset it and {_ADVICE}"
            )
    else:
        found = shutil.which("java", path=environment.get("PATH", os.defpath))
        if found is None:
            raise JavaError(f"Spark needs Java {OLDEST} or newer, and there is none: {_ADVICE}")
        path = found
    java = Java(path, _version(path))
    if java.version < OLDEST:
        raise JavaError(
            f"Spark needs Java {OLDEST} or newer, but {path} is Java {java.version}: "
            f"{_ADVICE}, or set JAVA_HOME to a newer one"
        )
    return java


def _version(path: str) -> int:
    try:
        result = subprocess.run(
            [path, "-version"],
            capture_output=True,
            check=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=_TIMEOUT,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaError(f"{path} does not run ({_reason(error)}): {_ADVICE}") from None
    match = _VERSION.search(result.stderr + result.stdout)
    if match is None:
        raise JavaError(f"{path} prints no version, so it is not Java: {_ADVICE}")
    return int(match[1])


def _reason(error: OSError | subprocess.SubprocessError) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return f"exit status {error.returncode}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"no answer within {_TIMEOUT:.0f} seconds"
    return getattr(error, "strerror", None) or str(error)
