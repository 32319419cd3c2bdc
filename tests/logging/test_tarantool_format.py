"""Log lines in Tarantool's formats, of records that are not from Lua."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

from iproto_server.logging.log_output import LogOutput
from iproto_server.logging.tarantool_format import CRIT, Format, Origin, TarantoolFormatter


def record(message: str, level: int = logging.INFO, **attributes: object) -> logging.LogRecord:
    made = logging.LogRecord("a.logger", level, "/a/folder/file.py", 7, message, (), None)
    made.__dict__.update(attributes)
    return made


def line(made: logging.LogRecord, log_format: Format) -> str:
    return TarantoolFormatter(log_format).format(made)


def test_a_record_of_python_has_a_level_a_place_and_fields() -> None:
    made = record("listening", logging.WARNING, fields={"address": "127.0.0.1:3301"})
    moment, _, rest = line(made, "plain").partition(" main ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \[\d+\]", moment)
    assert rest == "file.py:7 W> listening address=127.0.0.1:3301"
    assert line(made, "boot") == "listening address=127.0.0.1:3301"


def test_each_level_has_its_sign() -> None:
    levels = {
        logging.CRITICAL: "F",
        logging.ERROR: "E",
        logging.WARNING: "W",
        logging.INFO: "I",
        logging.DEBUG: "D",
    }
    for level, sign in levels.items():
        assert f" {sign}> text" in line(record("text", level), "plain")
    assert " main C> text" in line(record("text", origin=Origin(CRIT)), "plain")


def test_a_line_in_json_is_an_object() -> None:
    found = json.loads(line(record('a "text" \n / \x7f', logging.ERROR), "json"))
    assert (found["level"], found["message"], found["line"]) == ("ERROR", 'a "text" \n / \x7f', 7)


def test_a_traceback_follows_the_message() -> None:
    try:
        raise ValueError("wrong")
    except ValueError as error:
        made = record("failed", logging.ERROR, exc_info=(ValueError, error, error.__traceback__))
    assert line(made, "boot").endswith("ValueError: wrong")


def test_a_file_gets_bytes_of_lua_as_they_are(tmp_path: Path) -> None:
    output = LogOutput()
    output.open(b"file:" + bytes(tmp_path / "a.log"))
    output.handle(record(b"\xff".decode("utf-8", "surrogateescape")))
    output.handle(record("\ud800"))
    assert (tmp_path / "a.log").read_bytes() == b"\xff\n\\ud800\n"
    assert output.is_file


def test_an_output_without_a_file_is_not_opened_anew() -> None:
    assert LogOutput().rotate() is False
