"""Restores the loggers that targets change after each test."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    logger = logging.getLogger("iproto_server")
    before = logger.level, logger.propagate, list(logger.handlers)
    yield
    level, logger.propagate, logger.handlers[:] = before
    logger.setLevel(level)
