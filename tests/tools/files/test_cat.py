"""`iproto-server cat`: what it shows, of which rows, and what it says of files that are damaged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from iproto_server.codec import msgpack as codec
from iproto_server.storage.xlog import FileType, Row, RowType, XlogWriter, encode_row, insert_body
from iproto_server.storage.xlog.block import encode_block
from tests.command_line import run, run_with_permissions
from tests.programs import REPOSITORY
from tests.storage.files import TIMESTAMP, deletion, header, insertion, replacement, update, upsert
from tests.tools.files.sample_files import write_log, write_rows, write_snapshot


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with a row of each kind, one transaction of three rows, and rows of a system space."""
    return write_log(
        tmp_path / "00000000000000000000.xlog",
        [
            [insertion(280, 512, 1, "tasks", "memtx", 0, {}, [])],
            [insertion(512, 1, "one")],
            [replacement(512, 1, "uno"), update(512, [1], [["=", 1, "due"]]), deletion(513, 7)],
            [upsert(512, [2, 5], [["+", 1, 1]], 0)],
        ],
    )


def lsns(*arguments: object) -> list[int]:
    """The LSNs that are shown."""
    outcome = run("cat", "--format", "json", *arguments)
    assert (outcome.status, outcome.errors) == (0, [])
    return [json.loads(line)["HEADER"]["lsn"] for line in outcome.output.splitlines()]


class TestFormats:
    def test_yaml_is_the_usual_one(self, log: Path) -> None:
        outcome = run("cat", "--from", 2, "--to", 4, log)
        assert outcome == (
            0,
            """\
---
HEADER:
  lsn: 2
  replica_id: 1
  type: INSERT
  timestamp: 1700000001.25
BODY:
  space_id: 512
  tuple: [1, 'one']
---
HEADER:
  lsn: 3
  replica_id: 1
  type: REPLACE
  tsn: 3
  timestamp: 1700000002.25
BODY:
  space_id: 512
  tuple: [1, 'uno']
...

""",
            [],
        )

    def test_json_is_an_object_per_line(self, log: Path) -> None:
        outcome = run("cat", "--format", "json", "--from", 4, log)
        assert outcome.output.splitlines() == [
            '{"HEADER":{"lsn":4,"replica_id":1,"type":"UPDATE","tsn":3,"timestamp":1700000002.25},'
            '"BODY":{"space_id":512,"key":[1],"tuple":[["=",1,"due"]]}}',
            '{"HEADER":{"lsn":5,"commit":true,"replica_id":1,"type":"DELETE","tsn":3,"timestamp":1700000002.25},'
            '"BODY":{"space_id":513,"key":[7]}}',
            '{"HEADER":{"lsn":6,"replica_id":1,"type":"UPSERT","timestamp":1700000003.25},'
            '"BODY":{"space_id":512,"operations":[["+",1,1]],"tuple":[2,5]}}',
        ]

    def test_lua_is_a_statement_per_line_that_counts_from_1(self, log: Path) -> None:
        outcome = run("cat", "--format", "lua", log)
        assert outcome.output.splitlines() == [
            r"box.space[512]:insert({[1] = 1, [2] = '\x6f\x6e\x65'})",
            r"box.space[512]:replace({[1] = 1, [2] = '\x75\x6e\x6f'})",
            r"box.space[512]:update({[1] = 1}, {[1] = {[1] = '\x3d', [2] = 2, [3] = '\x64\x75\x65'}})",
            "box.space[513]:delete({[1] = 7})",
            r"box.space[512]:upsert({[1] = 2, [2] = 5}, {[1] = {[1] = '\x2b', [2] = 2, [3] = 1}})",
        ]

    def test_field_numbers_that_count_from_1_stay_in_lua(self, tmp_path: Path) -> None:
        operations = [["=", 2, "x"], [":", 3, 1, 0, "y"], ["#", -1, 1], ["=", "name", 5]]
        path = write_log(tmp_path / "1.xlog", [[update(512, [1], operations, 1)]])
        from_one = run("cat", "--format", "lua", path).output
        operations = [["=", 1, "x"], [":", 2, 0, 0, "y"], ["#", -1, 1], ["=", "name", 5]]
        path = write_log(tmp_path / "2.xlog", [[update(512, [1], operations, 0)]])
        assert run("cat", "--format", "lua", path).output == from_one
        assert "[2] = 3, [3] = 1" in from_one

    def test_rows_without_a_change_are_no_lua(self, tmp_path: Path) -> None:
        path = write_raw(tmp_path, Row(RowType.NOP, 1, replica_id=1, timestamp=TIMESTAMP, tsn=1))
        assert run("cat", "--format", "lua", path).output == ""
        assert json.loads(run("cat", "--format", "json", path).output) == {
            "HEADER": {"lsn": 1, "replica_id": 1, "type": "NOP", "timestamp": TIMESTAMP}
        }

    def test_rows_about_the_replica_set_have_numbered_fields(self, tmp_path: Path) -> None:
        row = Row(RowType.CONFIRM, 1, body=codec.pack({2: 1, 3: 7}), replica_id=1, tsn=1)
        shown = yaml.safe_load(run("cat", write_raw(tmp_path, row)).output)
        assert shown == {"HEADER": {"lsn": 1, "replica_id": 1, "type": "CONFIRM"}, "BODY": {2: 1, 3: 7}}

    def test_a_type_that_nobody_knows_is_a_number(self, tmp_path: Path) -> None:
        shown = run("cat", "--format", "json", write_raw(tmp_path, Row(77, 1, replica_id=1, tsn=1)))
        assert shown.output == '{"HEADER":{"lsn":1,"replica_id":1,"type":77}}\n'

    def test_what_tarantool_3_may_add_has_its_name(self, tmp_path: Path) -> None:
        body = codec.pack({0x10: 512, 0x21: [1], 0x2C: [0], 0x2D: [1], 0x77: "?"})
        row = Row(RowType.REPLACE, 1, body=body, replica_id=1, tsn=1)
        shown = json.loads(run("cat", "--format", "json", write_raw(tmp_path, row)).output)
        assert shown["BODY"] == {
            "space_id": 512,
            "tuple": [1],
            "old_tuple": [0],
            "new_tuple": [1],
            "119": "?",
        }

    def test_rows_that_are_not_replicated_show_their_group(self, tmp_path: Path) -> None:
        row = Row(RowType.INSERT, 5, body=insert_body(512, b"\x91\x01"), group_id=1, tsn=9)
        shown = run("cat", "--format", "json", write_raw(tmp_path, row)).output
        assert shown.startswith('{"HEADER":{"lsn":5,"group_id":1,"type":"INSERT","commit":true,"tsn":9},')

    def test_a_snapshot(self, tmp_path: Path) -> None:
        path = write_snapshot(tmp_path, {512: [[1, "a"], [2, "b"]]}, {1: 10})
        assert run("cat", "--format", "json", path).output == (
            '{"HEADER":{"timestamp":1700000000.25,"type":"INSERT"},"BODY":{"space_id":512,"tuple":[1,"a"]}}\n'
            '{"HEADER":{"lsn":1,"type":"INSERT","timestamp":1700000000.25},'
            '"BODY":{"space_id":512,"tuple":[2,"b"]}}\n'
        )


def write_raw(directory: Path, *rows: Row) -> Path:
    """Write a log of rows of any kind."""
    path = directory / "00000000000000000000.xlog"
    with path.open("wb", buffering=0) as file:
        writer = XlogWriter.create(file, header())
        writer.write([b"".join(map(encode_row, rows))])
        writer.end()
    return path


NOT_UTF8 = b"\xff\xfe".decode("utf-8", "surrogateescape")
IDENTITY = uuid.UUID("3dbe0a5e-5f0d-4f5c-9d5a-0e9f9a3f7f31")

VALUES: list[tuple[object, str, str, str]] = [
    (None, "null", "null", "box.NULL"),
    (True, "true", "true", "true"),
    (-5, "-5", "-5", "-5"),
    (10**14, "100000000000000", "100000000000000", "100000000000000ULL"),
    (2**64 - 1, "18446744073709551615", "18446744073709551615", "18446744073709551615ULL"),
    (-(2**63), "-9223372036854775808", "-9223372036854775808", "-9223372036854775808LL"),
    (1.5, "1.5", "1.5", "1.5"),
    (5.0, "5", "5", "5"),
    (1 / 3, "0.33333333333333", "0.33333333333333", "0.33333333333333"),
    (1e300, "1e+300", "1e+300", "1e+300"),
    (float("inf"), ".inf", '"inf"', "math.huge"),
    (float("-inf"), "-.inf", '"-inf"', "-math.huge"),
    (float("nan"), ".nan", '"nan"', "0/0"),
    ("", "''", '""', "''"),
    ("it's", "'it''s'", '"it\'s"', r"'\x69\x74\x27\x73'"),
    ("a/b\x7f", '"a/b\\x7F"', '"a\\/b\\u007f"', r"'\x61\x2f\x62\x7f'"),
    ("é", "'é'", '"é"', r"'\xc3\xa9'"),
    (NOT_UTF8, "!!binary //4=", r'"\udcff\udcfe"', r"'\xff\xfe'"),
    (b"abc", "'abc'", '"abc"', r"'\x61\x62\x63'"),
    (b"\xff\xfe", "!!binary //4=", r'"\udcff\udcfe"', r"'\xff\xfe'"),
    (Decimal("1.50"), "1.50", '"1.50"', "require('decimal').new('1.50')"),
    (Decimal("-1E+3"), "-1000", '"-1000"', "require('decimal').new('-1000')"),
    (IDENTITY, f"{IDENTITY}", f'"{IDENTITY}"', f"require('uuid').fromstr('{IDENTITY}')"),
    ([], "[]", "[]", "{}"),
    ({}, "{}", "{}", "{}"),
    ([1, [2]], "[1, [2]]", "[1,[2]]", "{[1] = 1, [2] = {[1] = 2}}"),
    ({"a": {"b": 1}}, "{'a': {'b': 1}}", '{"a":{"b":1}}', r"{['\x61'] = {['\x62'] = 1}}"),
    ({-1: 0, 1.5: 0}, "{-1: 0, 1.5: 0}", '{"-1":0,"1.5":0}', "{[-1] = 0, [1.5] = 0}"),
    (
        codec.Datetime(1700000000, 5 * 10**8, 180),
        "'2023-11-15T01:13:20.5+0300'",
        '"2023-11-15T01:13:20.5+0300"',
        "'" + "".join(f"\\x{byte:02x}" for byte in b"2023-11-15T01:13:20.5+0300") + "'",
    ),
    (
        codec.Interval(year=1, day=-2),
        "'+1 years, -2 days'",
        '"+1 years, -2 days"',
        "'" + "".join(f"\\x{byte:02x}" for byte in b"+1 years, -2 days") + "'",
    ),
    (
        codec.ExtType(9, b"abc"),
        "'ext(9, 616263)'",
        '"ext(9, 616263)"',
        "'" + "".join(f"\\x{byte:02x}" for byte in b"ext(9, 616263)") + "'",
    ),
]


@pytest.mark.parametrize(("value", "in_yaml", "in_json", "in_lua"), VALUES)
class TestValues:
    """Every type in every format. test_cat_real.py compares with Tarantool what it can show itself."""

    def test_as_yaml(self, value: object, in_yaml: str, in_json: str, in_lua: str, tmp_path: Path) -> None:
        shown = run("cat", write_log(tmp_path / "1.xlog", [[insertion(512, value)]])).output
        assert f"\n  tuple: [{in_yaml}]\n" in shown
        yaml.safe_load(shown)

    def test_as_json(self, value: object, in_yaml: str, in_json: str, in_lua: str, tmp_path: Path) -> None:
        shown = run(
            "cat", "--format", "json", write_log(tmp_path / "1.xlog", [[insertion(512, value)]])
        ).output
        assert shown.endswith(f',"tuple":[{in_json}]}}}}\n')
        json.loads(shown)

    def test_as_lua(self, value: object, in_yaml: str, in_json: str, in_lua: str, tmp_path: Path) -> None:
        shown = run(
            "cat", "--format", "lua", write_log(tmp_path / "1.xlog", [[insertion(512, value)]])
        ).output
        assert shown == f"box.space[512]:insert({{[1] = {in_lua}}})\n"


@pytest.mark.parametrize(
    ("key", "in_yaml", "in_json"),
    [
        (b"\x92\x01\x02", "? [1, 2] : 0", r'"[1,2]":0'),
        (b"\xc3", "true: 0", '"true":0'),
        (b"\xc0", "null: 0", '"null":0'),
    ],
)
def test_maps_may_have_any_keys(key: bytes, in_yaml: str, in_json: str, tmp_path: Path) -> None:
    row = Row(RowType.INSERT, 1, body=insert_body(512, b"\x91\x81" + key + b"\x00"), replica_id=1, tsn=1)
    path = write_raw(tmp_path, row)
    assert f"tuple: [{{{in_yaml}}}]" in run("cat", path).output
    assert f'"tuple":[{{{in_json}}}]' in run("cat", "--format", "json", path).output


def test_a_value_that_is_nested_too_deep_is_said_not_to_be_shown(tmp_path: Path) -> None:
    body = insert_body(512, b"\x91" * 980 + b"\x00")
    path = write_raw(
        tmp_path,
        Row(RowType.INSERT, 1, body=body, replica_id=1, tsn=1),
        Row(RowType.INSERT, 2, body=insert_body(512, b"\x91\x07"), replica_id=1, tsn=2),
    )
    for shown_as in ("yaml", "json", "lua"):
        outcome = run("cat", "--format", shown_as, path)
        assert outcome.status == 1
        assert outcome.errors == [f"{path}: the row with LSN 1 is nested too deep to be shown"]
        assert "7" in outcome.output


class TestSelection:
    def test_all_rows_but_those_of_system_spaces(self, log: Path) -> None:
        assert lsns(log) == [2, 3, 4, 5, 6]

    def test_system_spaces_too(self, log: Path) -> None:
        assert lsns("--show-system", log) == [1, 2, 3, 4, 5, 6]

    def test_from_an_lsn_on_and_up_to_but_without_another(self, log: Path) -> None:
        assert lsns("--from", 3, log) == [3, 4, 5, 6]
        assert lsns("--to", 5, log) == [2, 3, 4]
        assert lsns("--from-lsn", 3, "--to-lsn", 5, log) == [3, 4]

    def test_a_space(self, log: Path) -> None:
        assert lsns("--space", 513, log) == [5]
        assert lsns("--space", 512, "--space", 513, log) == [2, 3, 4, 5, 6]

    def test_a_system_space_that_is_asked_for(self, log: Path) -> None:
        assert lsns("--space", 280, log) == [1]

    def test_a_space_by_its_name(self, log: Path) -> None:
        assert lsns("--space", "tasks", log) == [2, 3, 4, 6]

    def test_a_name_may_come_from_an_earlier_file(self, log: Path, tmp_path: Path) -> None:
        snapshot = write_snapshot(tmp_path, {280: [[513, 1, "jobs", "memtx", 0, {}, []]]}, {})
        assert lsns("--space", "jobs", snapshot, log) == [5]

    def test_a_name_that_no_space_has(self, log: Path) -> None:
        outcome = run("cat", "--space", "jobs", log)
        assert outcome == (1, "", ['no space is called "jobs" in these files: try its id'])

    def test_up_to_a_moment(self, log: Path) -> None:
        assert lsns("--timestamp", TIMESTAMP + 2, log) == [2]
        assert lsns("--timestamp", "2023-11-14T22:13:23Z", log) == [2, 3, 4, 5]
        assert lsns("--timestamp", "2023-11-15T01:13:23+03:00", log) == [2, 3, 4, 5]

    def test_a_member(self, tmp_path: Path) -> None:
        rows = [
            Row(RowType.INSERT, lsn, body=insert_body(512, b"\x91\x01"), replica_id=member, tsn=lsn)
            for member, lsn in [(1, 1), (2, 1), (1, 2), (2, 2)]
        ]
        path = write_raw(tmp_path, *rows)
        assert lsns("--replica", 2, path) == [1, 2]
        assert lsns("--replica", 2, "--replica", 1, "--from", 2, path) == [2, 2]
        assert lsns("--replica", 2, "--to", 2, path) == [1]
        assert lsns("--replica", 3, path) == []

    def test_nothing_is_read_behind_the_last_row_of_the_only_member(self, tmp_path: Path) -> None:
        path = write_rows(tmp_path / "1.xlog", 3)
        damaged = bytearray(path.read_bytes())
        damaged[-10] ^= 1
        path.write_bytes(damaged)
        assert lsns("--replica", 1, "--to", 2, path) == [1]

    def test_several_files_one_after_the_other(self, log: Path, tmp_path: Path) -> None:
        other = write_log(tmp_path / "2.xlog", [[insertion(600, 1)]], first=7)
        assert lsns(log, other) == [2, 3, 4, 5, 6, 7]
        assert run("cat", "--space", 600, log, other).output.count("...\n\n") == 1
        assert run("cat", log, other).output.count("...\n\n") == 2


class TestFiles:
    def test_a_log_that_is_being_written(self, tmp_path: Path) -> None:
        path = write_log(tmp_path / "1.xlog", [[insertion(512, 1)]], end=False)
        assert lsns(path) == [1]

    def test_compressed_blocks(self, tmp_path: Path) -> None:
        path = write_log(tmp_path / "1.xlog", [[insertion(512, 1, "x" * 5000)]])
        assert path.stat().st_size < 1000
        assert lsns(path) == [1]

    def test_a_log_of_tarantool_1_7(self, tmp_path: Path) -> None:
        row = encode_row(Row(RowType.INSERT, 1, body=insert_body(512, b"\x91\x01"), replica_id=1, tsn=1))
        head = b"XLOG\n0.12\nServer: 3dbe0a5e-5f0d-4f5c-9d5a-0e9f9a3f7f31\nVClock: {}\n\n"
        path = tmp_path / "1.xlog"
        path.write_bytes(head + encode_block(row, None))
        assert lsns(path) == [1]

    def test_what_is_behind_damage_is_shown_and_the_damage_named(self, tmp_path: Path) -> None:
        path = write_rows(tmp_path / "1.xlog", 3)
        content = path.read_bytes()
        place = content.index(b"row 2")
        path.write_bytes(content.replace(b"row 2", b"row X"))
        start = content.rindex(b"\xd5\xba\x0b\xab", 0, place)
        outcome = run("cat", "--format", "lua", path)
        assert outcome.status == 1
        assert outcome.errors == [f"{path}: wrong checksum of a block at offset {start}"]
        assert [line[:32] for line in outcome.output.splitlines()] == [
            "box.space[512]:insert({[1] = 1, ",
            "box.space[512]:insert({[1] = 3, ",
        ]

    def test_a_torn_end(self, tmp_path: Path) -> None:
        path = write_rows(tmp_path / "1.xlog", 3)
        path.write_bytes(path.read_bytes()[:-20])
        outcome = run("cat", "--format", "json", path)
        assert (outcome.status, outcome.output.count("\n")) == (1, 2)
        [error] = outcome.errors
        assert error.startswith(f"{path}: the file ends after ")

    def test_whatever_is_damaged_is_told_in_words(self, tmp_path: Path) -> None:
        path = write_rows(tmp_path / "1.xlog", 2)
        good = path.read_bytes()
        for place in range(len(good)):
            path.write_bytes(good[:place] + bytes((good[place] ^ 0x81,)) + good[place + 1 :])
            outcome = run("cat", "--format", "json", path)
            assert (outcome.status == 1) == bool(outcome.errors)
            path.write_bytes(good[:place])
            outcome = run("cat", "--format", "json", path)
            assert (outcome.status == 1) == bool(outcome.errors)

    def test_a_snapshot_that_is_not_complete(self, tmp_path: Path) -> None:
        path = write_snapshot(tmp_path, {512: [[1], [2]]}, {1: 2})
        path.write_bytes(path.read_bytes()[:-4])
        outcome = run("cat", "--format", "json", path)
        assert (outcome.status, outcome.output.count("\n")) == (1, 2)
        assert outcome.errors == [
            f"{path}: the snapshot ends without end marker at offset {path.stat().st_size}"
        ]

    def test_a_bad_file_does_not_hide_the_next(self, tmp_path: Path) -> None:
        path = write_rows(tmp_path / "1.xlog", 1)
        outcome = run("cat", "--format", "json", tmp_path / "nowhere.xlog", path)
        assert outcome.errors == [f"cannot read {tmp_path / 'nowhere.xlog'}: No such file or directory"]
        assert (outcome.status, outcome.output.count("\n")) == (1, 1)

    def test_a_directory_by_lsn_snapshots_first(self, tmp_path: Path) -> None:
        write_log(tmp_path / "00000000000000000003.xlog", [[insertion(512, 4)]], first=4)
        write_log(tmp_path / "00000000000000000000.xlog", [[insertion(512, 1)], [insertion(512, 2)]])
        write_snapshot(tmp_path, {512: [[1], [2], [3]]}, {1: 3})
        (tmp_path / "notes.txt").write_text("hello")
        outcome = run("cat", "--format", "json", tmp_path)
        assert (outcome.status, outcome.errors) == (0, [])
        rows = [json.loads(line)["BODY"]["tuple"] for line in outcome.output.splitlines()]
        assert rows == [[1], [2], [1], [2], [3], [4]]

    def test_a_directory_without_files(self, tmp_path: Path) -> None:
        complaint = f"{tmp_path}: there are no logs or snapshots in this directory"
        assert run("cat", tmp_path) == (1, "", [complaint])

    def test_a_directory_that_must_not_be_read(self, tmp_path: Path) -> None:
        directory = tmp_path / "data"
        directory.mkdir(0o300)
        outcome = run_with_permissions("cat", directory)
        directory.chmod(0o700)
        assert outcome == (1, "", [f"cannot read {directory}: Permission denied"])

    def test_a_file_that_must_not_be_read(self, tmp_path: Path) -> None:
        path = write_rows(tmp_path / "1.xlog", 1)
        path.chmod(0)
        readable = write_rows(tmp_path / "2.xlog", 1)
        outcome = run_with_permissions("cat", "--format", "json", path, readable)
        assert outcome.errors == [f"cannot read {path}: Permission denied"]
        assert (outcome.status, outcome.output.count("\n")) == (1, 1)

    @pytest.mark.parametrize("content", [b"", b"hello\n", b"XLOG\n9.9\n\n" + bytes(5000), bytes(10000)])
    def test_what_is_no_log(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "1.xlog"
        path.write_bytes(content)
        outcome = run("cat", path)
        assert (outcome.status, outcome.output, len(outcome.errors)) == (1, "", 1)
        assert outcome.errors[0].startswith(f"{path}: ")
        assert outcome.errors[0].endswith(" at offset 0")

    def test_a_text(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("hello\n")
        assert run("cat", tmp_path / "notes.txt").errors == [
            f"{tmp_path / 'notes.txt'}: no header at offset 0"
        ]

    def test_a_vinyl_file_is_none_either(self, tmp_path: Path) -> None:
        path = tmp_path / "1.vylog"
        path.write_bytes(header().encode().replace(b"XLOG", b"VYLOG"))
        assert run("cat", path).errors == [f"{path}: unknown file type 'VYLOG' at offset 0"]


class TestCommandLine:
    @pytest.mark.parametrize(
        ("arguments", "reason"),
        [
            ([], "Missing argument 'FILE...'"),
            (["--format", "xml", "x"], 'unknown format "xml": choose yaml, json or lua'),
            (["--from", "-1", "x"], "-1 is not in the range"),
            (["--to", "many", "x"], "'many' is not a valid integer"),
            (["--replica", "32", "x"], "32 is not in the range"),
            (["--space", "", "x"], "the name is empty"),
            (["--timestamp", "yesterday", "x"], '"yesterday" is neither seconds since 1970 nor a moment'),
            (["--timestamp", "2026-01-31", "x"], '"2026-01-31" does not say of which time zone'),
            (["--lsn", "5", "x"], "No such option"),
        ],
    )
    def test_mistakes_are_named(self, arguments: list[str], reason: str) -> None:
        outcome = run("cat", *arguments)
        assert (outcome.status, outcome.output, len(outcome.errors)) == (2, "", 1)
        assert reason in outcome.errors[0]

    def test_help_has_examples(self) -> None:
        outcome = run("cat", "--help")
        assert outcome.status == 0
        assert "\nExamples:\n  iproto-server cat " in outcome.output

    def test_a_reader_that_has_seen_enough_is_no_error(self, tmp_path: Path) -> None:
        path = write_log(
            tmp_path / "1.xlog", [[insertion(512, number, "x" * 100) for number in range(20_000)]]
        )
        command: Any = [sys.executable, "-m", "iproto_server", "cat", path]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == b"---\n"
            process.stdout.close()
            assert process.wait(timeout=60) == 0
            assert process.stderr.read() == b""


def test_the_suffix_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "copy"
    path.write_bytes(write_rows(tmp_path / f"1{FileType.LOG.suffix}", 2).read_bytes())
    assert lsns(path) == [1, 2]
