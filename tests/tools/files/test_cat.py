"""`iproto-server cat`: how rows and values are shown."""

from __future__ import annotations

import json
import uuid
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from iproto_server.codec import msgpack as codec
from iproto_server.storage.xlog import Row, RowType, insert_body
from tests.command_line import run
from tests.storage.files import TIMESTAMP, insertion, update
from tests.tools.files.sample_files import write_log, write_snapshot
from tests.tools.files.shown_log import write_raw


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
