"""Tarantool 1.5's protocol: bytes of responses, and numbers of errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol.tarantool15 import (
    ReturnCode,
    encode_error,
    encode_pong,
    encode_tuples,
    return_code,
)
from iproto_server.protocol.tarantool15 import response as response_module
from iproto_server.protocol.tarantool15.response import answered_request, encode_length, encode_tuple
from iproto_server.protocol.tarantool15.return_code import RETURN_CODES
from tests.protocol.tarantool15.box15_client import answer_of, varint

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "PROTOCOL.md"


class TestBytes:
    def test_a_pong_is_the_header_of_the_ping(self) -> None:
        assert encode_pong(7) == bytes.fromhex("00ff0000 00000000 07000000")

    def test_rows_follow_a_return_code_and_their_number(self) -> None:
        answer = encode_tuples(17, 9, 1, [encode_tuple([b"a", b"bc"])])
        header = "11000000 15000000 09000000"
        assert answer == bytes.fromhex(header + "00000000 01000000 05000000 02000000") + b"\x01a\x02bc"

    def test_without_rows_there_is_their_number_only(self) -> None:
        assert encode_tuples(13, 9, 1) == bytes.fromhex("0d000000 08000000 09000000 00000000 01000000")

    def test_an_error_has_its_number_its_status_and_a_text_that_ends_with_zero(self) -> None:
        answer = encode_error(22, 5, BoxError(ErrorCode.NO_SUCH_PROC, "f"))
        start = bytes.fromhex("16000000 21000000 05000000 02320000")
        assert answer == start + b"Procedure 'f' is not defined\0"

    def test_errors_of_procedures_begin_as_in_lua(self) -> None:
        answer = answer_of(encode_error(22, 5, BoxError.procedure("Task not found")))
        assert (answer.code, answer.status, answer.message) == (51, 2, "Lua error: Task not found")

    def test_a_text_ends_with_its_first_zero(self) -> None:
        assert answer_of(encode_error(22, 5, BoxError.procedure("a\0b"))).message == "Lua error: a"

    @pytest.mark.parametrize("text", ["é", "\udcff", chr(0xD800)])
    def test_any_text_can_be_sent(self, text: str) -> None:
        assert answer_of(encode_error(22, 5, BoxError.procedure(text))).message.startswith("Lua error: ")

    def test_an_answer_tells_whose_it_is(self) -> None:
        assert answered_request(encode_tuples(17, 2**32 - 1, 0)) == (17, 2**32 - 1)

    def test_an_answer_longer_than_the_protocol_allows_is_refused(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(response_module, "BODY_MAX", 100)
        assert len(encode_tuples(17, 1, 1, [b"x" * 92])) == 112
        with pytest.raises(BoxError) as raised:
            encode_tuples(17, 1, 1, [b"x" * 93])
        assert return_code(raised.value) == ReturnCode.MEMORY_ISSUE << 8 | 1

    @given(st.integers(0, 2**32 - 1))
    def test_lengths_are_as_short_as_can_be(self, number: int) -> None:
        assert encode_length(number) == varint(number)


class TestReturnCodes:
    def test_every_error_of_the_box_has_one(self) -> None:
        for code in ErrorCode:
            number = return_code(BoxError.with_message(code, "text")) >> 8
            assert number in set(ReturnCode)

    def test_errors_unknown_to_1_5_are_illegal_parameters(self) -> None:
        assert return_code(BoxError(ErrorCode.NO_SUCH_USER, "alice")) == 0x0202
        assert return_code(BoxError(ErrorCode.UNKNOWN)) == 0x0202

    def test_an_application_s_own_number_stays(self) -> None:
        assert return_code(BoxError.with_message(30000, "mine")) == 30000 << 8 | 2

    @pytest.mark.parametrize("code", [-1, 2**40 + 7, -(2**70)])
    def test_any_number_has_a_code_of_four_bytes(self, code: int) -> None:
        assert 0 < return_code(BoxError.with_message(code, "odd")) < 2**32

    def test_only_memory_may_be_there_the_next_time(self) -> None:
        codes = {each: return_code(BoxError.with_message(each, "")) for each in ErrorCode}
        assert [each for each, code in codes.items() if code & 0xFF == 1] == [ErrorCode.MEMORY_ISSUE]

    def test_the_document_has_the_same_table(self) -> None:
        text = DOCUMENT.read_text(encoding="utf-8").partition("## Tarantool 1.5's protocol")[2]
        rows = re.findall(r"^\| (\d+) `ER_(\w+)` \| ([^|]+) \|", text, re.MULTILINE)
        told = {}
        for number, name, errors in rows:
            assert ReturnCode[name] == int(number)
            told.update(dict.fromkeys(re.findall(r"`(\w+)`", errors), ReturnCode[name]))
        assert told == {code.name: ours for code, ours in RETURN_CODES.items()}
