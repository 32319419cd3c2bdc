"""The log's filter of warnings and errors that repeat."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from iproto_server.logging.log_setup import event
from iproto_server.logging.repeat_filter import (
    BURST,
    INTERVAL,
    LONGEST_INTERVAL,
    MAX_KINDS,
    QUIET,
    RepeatFilter,
)

logger = logging.getLogger("iproto_server.test_repeat_filter")


class Log(logging.Handler):
    """A handler with the filter, and a clock that tests advance.

    Attributes:
        now: steady time in seconds.
        lines: the text and the fields of each line.
        tracebacks: the number of lines with a traceback.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.lines: list[tuple[str, dict[str, object]]] = []
        self.tracebacks = 0
        self.addFilter(RepeatFilter(lambda: self.now))

    def emit(self, record: logging.LogRecord) -> None:
        self.tracebacks += record.exc_info is not None
        self.lines.append((record.getMessage(), getattr(record, "fields", {})))

    def read(self) -> list[tuple[str, dict[str, object]]]:
        """Return the lines since the last call."""
        lines, self.lines = self.lines, []
        return lines


@pytest.fixture
def log() -> Iterator[Log]:
    handler = Log()
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def fail(text: str) -> None:
    try:
        raise ValueError(text)
    except ValueError:
        logger.exception("cannot process %s", "tasks")


def test_events_beyond_the_first_of_their_kind_are_dropped(log: Log) -> None:
    for number in range(1000):
        logger.warning("refused %d", number)
    assert log.read() == [(f"refused {number}", {}) for number in range(BURST)]


def test_the_next_line_has_the_number_of_those_dropped(log: Log) -> None:
    for number in range(1000):
        event(logger, logging.ERROR, "refused", number=number)
    log.read()
    log.now = INTERVAL
    event(logger, logging.ERROR, "refused", number=1000)
    event(logger, logging.ERROR, "refused", number=1001)
    assert log.read() == [("refused", {"number": 1000, "repeated": 1000 - BURST})]


def test_an_hour_of_errors_is_few_lines_that_tell_their_number(log: Log) -> None:
    for _ in range(36_000):
        fail("full")
        log.now += 0.1
    lines = log.read()
    assert len(lines) <= 20
    repeated = sum(int(str(fields.get("repeated", 0))) for _, fields in lines)
    assert repeated + len(lines) + 10 * (LONGEST_INTERVAL + 1) >= 36_000


def test_the_first_event_alone_has_a_traceback(log: Log) -> None:
    for _ in range(3):
        fail("full")
    assert log.tracebacks == 1
    assert log.read() == [
        ("cannot process tasks", {}),
        *[("cannot process tasks", {"error": "ValueError: full"})] * 2,
    ]


def test_errors_from_other_places_are_of_another_kind(log: Log) -> None:
    fail("full")
    try:
        raise ValueError("full")
    except ValueError:
        logger.exception("cannot process %s", "tasks")
    assert log.tracebacks == 2


class UnreadableError(Exception):
    """Its text cannot be read."""

    def __str__(self) -> str:
        raise SystemExit(9)


def test_the_text_of_an_exception_may_raise(log: Log) -> None:
    for _ in range(2):
        try:
            raise UnreadableError
        except UnreadableError:
            logger.exception("cannot process %s", "tasks")
    assert log.read() == [
        ("cannot process tasks", {}),
        ("cannot process tasks", {"error": "UnreadableError: <exception str() failed>"}),
    ]


def test_after_quiet_time_a_kind_begins_anew(log: Log) -> None:
    for _ in range(BURST):
        logger.warning("refused")
    log.read()
    log.now = INTERVAL + QUIET
    for _ in range(BURST + 1):
        logger.warning("refused")
    assert len(log.read()) == BURST


def test_errors_with_other_causes_are_of_another_kind(log: Log) -> None:
    for text in ("full", "broken"):
        for _ in range(100):
            fail(text)
    assert len(log.read()) == 2 * BURST


def test_the_last_dropped_event_is_logged_when_its_kind_has_been_quiet(log: Log) -> None:
    for number in range(100):
        logger.warning("refused %d", number)
    log.read()
    log.now = INTERVAL + QUIET
    logger.info("something else")
    assert log.read() == [
        ("refused 99", {"repeated": 100 - BURST - 1}),
        ("something else", {}),
    ]


def test_dropped_events_keep_no_objects_of_the_code_that_failed(log: Log) -> None:
    for _ in range(BURST + 1):
        fail("full")
    log.read()
    log.now = INTERVAL + QUIET
    logger.info("something else")
    assert log.tracebacks == 1
    assert log.read()[0] == ("cannot process tasks", {"error": "ValueError: full", "repeated": 0})


def test_information_is_not_dropped(log: Log) -> None:
    for _ in range(100):
        logger.info("released a task")
    assert len(log.read()) == 100


def test_events_that_are_limited_already_are_not_dropped(log: Log) -> None:
    for _ in range(100):
        event(logger, logging.WARNING, "refused", count=7)
    assert len(log.read()) == 100


def test_too_many_kinds_are_one_together(log: Log) -> None:
    for number in range(MAX_KINDS + 100):
        logger.warning(f"refused {number}")  # a kind each
    assert len(log.read()) == MAX_KINDS + BURST


@pytest.fixture(autouse=True)
def _all_levels() -> Iterator[None]:
    before = logger.level
    logger.setLevel(logging.DEBUG)
    yield
    logger.setLevel(before)
