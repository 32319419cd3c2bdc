"""Tests marked `alone` run while no other test does, also among the processes of pytest-xdist.

Each test holds a lock on one file of the run, `alone` ones exclusively. A second lock, the turnstile, is held
while a test waits for the first one, so that tests that share it cannot pass one that waits.
"""

from __future__ import annotations

import fcntl
from collections.abc import Generator
from pathlib import Path

import pytest


class Locks:
    """The locks of one process of the run.

    Parameters:
        directory: A directory that the processes of the run share.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._turnstile = (directory / "turnstile.lock").open("w")
        self._tests = (directory / "tests.lock").open("w")

    def close(self) -> None:
        """Close the files, which releases the locks."""
        self._turnstile.close()
        self._tests.close()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Run a test under the lock. It waits before pytest-timeout starts to count."""
        alone = item.get_closest_marker("alone") is not None
        fcntl.flock(self._turnstile, fcntl.LOCK_EX)
        fcntl.flock(self._tests, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(self._turnstile, fcntl.LOCK_UN)
        try:
            return (yield)
        finally:
            fcntl.flock(self._tests, fcntl.LOCK_UN)


def pytest_configure(config: pytest.Config) -> None:
    """Lock in the processes of pytest-xdist only: without it, tests run one after the other."""
    if hasattr(config, "workerinput"):
        locks = Locks(Path(config.option.basetemp).parent)
        config.pluginmanager.register(locks, "locks")
        config.add_cleanup(locks.close)
