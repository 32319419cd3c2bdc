"""Removes the log handlers that a test has left: they would shorten the records that later tests look at."""

from __future__ import annotations

import logging

import pytest

from iproto_server.logging.repeat_filter import RepeatFilter


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Remove handlers of `configure_logs`, which code under test has called in this process."""
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if any(isinstance(each, RepeatFilter) for each in handler.filters):
            root.removeHandler(handler)
