"""The suites, and the environment variables that say where they are."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.suites import node_driver, tap, tarantool_python
from tests.suites.results import Results


class SettingError(Exception):
    """An environment variable is missing or wrong."""


@dataclass(frozen=True)
class Suite:
    """A suite.

    Attributes:
        variable: the environment variable that names its checkout.
        origin: where its checkout comes from.
        needed: a path in the checkout, to recognize it by.
        run: runs its tests: the checkout, the folder of `tarantool`, and parts of names of files or tests to
            run, empty for all.
    """

    variable: str
    origin: str
    needed: str
    run: Callable[[Path, Path, tuple[str, ...]], Results]

    def checkout(self) -> Path:
        """Find the checkout.

        Raises:
            SettingError: the environment variable is missing, or what it names is no checkout of the suite.
        """
        value = os.environ.get(self.variable)
        if not value:
            raise SettingError(f"set {self.variable} to a checkout of {self.origin}")
        path = Path(value).resolve()
        if not (path / self.needed).exists():
            raise SettingError(
                f"{self.variable}: no checkout of {self.origin}: {path / self.needed} is missing"
            )
        return path


def _tarantool_python(checkout: Path, folder: Path, parts: tuple[str, ...]) -> Results:
    python = os.environ.get("TARANTOOL_PYTHON_INTERPRETER", sys.executable)
    return tarantool_python.run_tests(checkout, folder, python, parts)


def _node_driver(checkout: Path, folder: Path, parts: tuple[str, ...]) -> Results:
    if not (checkout / "node_modules").is_dir() or shutil.which("node") is None:
        raise SettingError(f"needs node, and its packages: run npm install in {checkout}")
    return node_driver.run_tests(checkout, folder, parts)


def _queue(checkout: Path, folder: Path, parts: tuple[str, ...]) -> Results:
    scripts = [
        path for path in sorted((checkout / "t").glob("*.t")) if not path.name.startswith(_REPLICATION)
    ]
    variables = {"QUEUE_TMP": "{temporary}", "ENGINE": "memtx"}
    return tap.run_scripts(tap.chosen(scripts, parts), folder, checkout, variables)


_REPLICATION: Final = ("200-", "230-", "240-")
"""Scripts that need replication."""


def _tarantool(checkout: Path, folder: Path, parts: tuple[str, ...]) -> Results:
    tests = checkout / "test"
    scripts = sorted([*tests.glob("box-tap/*.test.lua"), *tests.glob("app-tap/*.test.lua")])
    left_out = [path for path in scripts if path.name in _WAITING]
    scripts = [path for path in scripts if path.name not in _WAITING]
    libraries = f"{tests}/app-tap/lua/?.lua;{tests}/app-tap/?.lua;;"
    variables = {
        "LISTEN": "{temporary}/listen.sock",
        "ADMIN": "{temporary}/admin.sock",
        "LUA_PATH": libraries,
    }
    results = tap.run_scripts(tap.chosen(scripts, parts), folder, None, variables)
    for path in tap.chosen(left_out, parts):
        results.skipped[f"{path.name}: script"] = _WAITING[path.name]
    return results


_WAITING: Final[Mapping[str, str]] = {
    "feedback_daemon.test.lua": "waits for reports to Tarantool's developers, which are not sent",
    "tarantoolctl.test.lua": "waits for instances in the background, which this server does not start",
}
"""Scripts that wait for ever for what this server does not do, and why."""


SUITES: Final[Mapping[str, Suite]] = {
    "tarantool-python": Suite(
        "TARANTOOL_PYTHON_CHECKOUT", "tarantool/tarantool-python", "test/suites", _tarantool_python
    ),
    "node-tarantool-driver": Suite(
        "NODE_TARANTOOL_DRIVER_CHECKOUT", "tarantool/node-tarantool-driver", "test/box.lua", _node_driver
    ),
    "queue": Suite("TARANTOOL_QUEUE_CHECKOUT", "tarantool/queue, tag 1.5.0", "t/tnt", _queue),
    "tarantool": Suite("TARANTOOL_CHECKOUT", "tarantool/tarantool, tag 2.6.0", "test/box-tap", _tarantool),
}
"""Name to suite."""
