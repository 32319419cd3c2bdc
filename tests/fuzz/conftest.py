"""Restores the loggers that targets change after each test."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("iproto_server", "pyspark_tarantool.source")]
    before = [(logger.level, logger.propagate, list(logger.handlers)) for logger in loggers]
    yield
    for logger, (level, propagate, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.propagate = propagate
        logger.handlers[:] = handlers
