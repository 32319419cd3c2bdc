"""The log's two formats."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from iproto_server.logging.log_setup import configure_logs, event

logger = logging.getLogger("iproto_server.test")


@pytest.fixture(autouse=True)
def _restore_root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(log_format: str, level: str = "info") -> io.StringIO:
    stream = io.StringIO()
    configure_logs(level, log_format, stream)
    return stream


class TestPlain:
    def test_an_event_with_fields(self) -> None:
        stream = logged("plain")
        event(logger, logging.INFO, "listening", address="127.0.0.1:3301", connections=0)
        line = stream.getvalue()
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z .*\n", line)
        assert line.endswith("Z info listening address=127.0.0.1:3301 connections=0\n")

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            ("two words", '"two words"'),
            ("", '""'),
            ('"', r'"\""'),
            ("a=b", '"a=b"'),
            ("a\nb", r'"a\nb"'),
            ("очередь", '"очередь"'),
            (None, "None"),
            ("C:\\x", r'"C:\\x"'),
        ],
    )
    def test_a_value_that_is_not_one_word_is_quoted(self, value: object, shown: str) -> None:
        stream = logged("plain")
        event(logger, logging.INFO, "closed", value=value)
        assert stream.getvalue().endswith(f" closed value={shown}\n")

    def test_a_message_cannot_forge_a_line(self) -> None:
        stream = logged("plain")
        logger.warning("user %s", "x\n2026-01-01 info forged")
        assert stream.getvalue().count("\n") == 1

    def test_a_traceback_follows(self) -> None:
        stream = logged("plain")
        try:
            raise ValueError("bad")
        except ValueError:
            logger.exception("failed")
        first, *rest = stream.getvalue().splitlines()
        assert first.endswith(" error failed")
        assert rest[0] == "  Traceback (most recent call last):"
        assert rest[-1] == "  ValueError: bad"

    def test_the_text_of_an_exception_cannot_forge_a_line(self) -> None:
        stream = logged("plain")
        try:
            raise ValueError("bad\n2026-01-01T00:00:00.000Z info forged\r\x1b[2J")
        except ValueError:
            logger.exception("failed")
        _, *rest = stream.getvalue().splitlines()
        assert all(line.startswith("  ") for line in rest)
        assert "\x1b" not in stream.getvalue()


class TestJson:
    def test_an_event_is_an_object_on_a_line(self) -> None:
        stream = logged("json")
        event(logger, logging.WARNING, "100% full", address="a\nb", count=3, peer=None, error=OSError("x"))
        assert stream.getvalue().count("\n") == 1
        entry = json.loads(stream.getvalue())
        assert entry.pop("time").endswith("Z")
        assert entry == {
            "level": "warn",
            "logger": "iproto_server.test",
            "event": "100% full",
            "address": "a\nb",
            "count": 3,
            "peer": None,
            "error": "x",
        }

    def test_fields_do_not_hide_the_record(self) -> None:
        stream = logged("json")
        event(logger, logging.INFO, "real", event="forged", level="forged")
        assert json.loads(stream.getvalue())["event"] == "real"
        assert json.loads(stream.getvalue())["level"] == "info"

    def test_a_traceback_is_a_field(self) -> None:
        stream = logged("json")
        try:
            raise ValueError("bad")
        except ValueError:
            logger.exception("failed")
        assert json.loads(stream.getvalue())["exception"].endswith("ValueError: bad")


class TestLevels:
    @pytest.mark.parametrize(
        ("level", "expected"),
        [
            ("fatal", "c"),
            ("error", "ec"),
            ("crit", "ec"),
            ("warn", "wec"),
            ("info", "iwec"),
            ("verbose", "diwec"),
            ("debug", "diwec"),
        ],
    )
    def test_less_important_events_are_dropped(self, level: str, expected: str) -> None:
        stream = logged("plain", level)
        for number, name in ((10, "d"), (20, "i"), (30, "w"), (40, "e"), (50, "c")):
            event(logger, number, name)
        assert "".join(line.split()[-1] for line in stream.getvalue().splitlines()) == expected

    def test_a_dropped_event_does_not_look_at_its_fields(self) -> None:
        class Unprintable:
            def __str__(self) -> str:
                raise AssertionError("looked at")

        logged("plain", "warn")
        event(logger, logging.INFO, "dropped", value=Unprintable())
