"""Requests of Tarantool 1.5's clients for rows."""

from __future__ import annotations

import struct

import pytest

from tests.protocol.tarantool15.box15_client import (
    ADD,
    DELETE_1_3,
    PING,
    REPLACE,
    RETURN_TUPLE,
    Client15,
    frame,
    operation,
    packed_tuple,
    splice,
    u32,
    u64,
)
from tests.server.tarantool15.application15 import PAIRS, PLAIN, TYPED
from tests.server.tarantool15.codes import (
    FIELD_TYPE,
    ILLEGAL_PARAMS,
    KEY_FIELD_TYPE,
    NO_SUCH_FIELD,
    NO_SUCH_INDEX,
    NO_SUCH_SPACE,
    PROC_RET,
    ROW,
)

pytestmark = pytest.mark.usefixtures("empty_spaces")


EXACT_MATCH, KEY_PART_COUNT, TUPLE_NOT_FOUND, TUPLE_FOUND = 45, 47, 49, 55


class TestPing:
    def test_it_is_answered_with_its_header(self, client: Client15) -> None:
        client.send_bytes(frame(PING, b"", 0xFFFFFFFF))
        assert client.receive().raw == bytes.fromhex("00ff0000 00000000 ffffffff")

    def test_a_body_that_it_should_not_have_is_passed_over(self, client: Client15) -> None:
        assert client.request(PING, b"body").raw[:8] == bytes.fromhex("00ff0000 00000000")


class TestInsert:
    def test_a_row_is_stored_and_counted(self, client: Client15) -> None:
        answer = client.insert(TYPED, *ROW)
        assert (answer.code, answer.count, answer.tuples) == (0, 1, [])
        assert client.select(TYPED, [u32(1)]).tuples == [ROW]

    def test_it_is_answered_where_it_is_asked_for(self, client: Client15) -> None:
        answer = client.insert(TYPED, *ROW, flags=RETURN_TUPLE)
        assert (answer.count, answer.tuples) == (1, [ROW])

    def test_it_takes_the_place_of_another(self, client: Client15) -> None:
        client.insert(TYPED, *ROW)
        assert client.insert(TYPED, u32(1), b"two", u32(10), u64(100)).count == 1
        assert client.select(TYPED, []).tuples == [[u32(1), b"two", u32(10), u64(100)]]

    def test_with_add_it_does_not(self, client: Client15) -> None:
        assert client.insert(TYPED, *ROW, flags=ADD).count == 1
        answer = client.insert(TYPED, *ROW, flags=ADD)
        assert (answer.code, answer.status) == (TUPLE_FOUND, 2)
        assert answer.message == "Duplicate key exists in unique index 'primary' in space 'typed'"

    def test_with_replace_there_must_be_another(self, client: Client15) -> None:
        answer = client.insert(TYPED, *ROW, flags=REPLACE)
        assert (answer.code, answer.message) == (
            TUPLE_NOT_FOUND,
            "Tuple doesn't exist in index 'primary' in space 'typed'",
        )
        client.insert(TYPED, *ROW)
        assert client.insert(TYPED, *ROW, flags=REPLACE | RETURN_TUPLE).tuples == [ROW]

    def test_add_is_stronger_than_replace_and_other_flags_mean_nothing(self, client: Client15) -> None:
        assert client.insert(TYPED, *ROW, flags=0xFFFFFFFF).tuples == [ROW]
        assert client.insert(TYPED, *ROW, flags=0xFFFFFFFE).code == TUPLE_FOUND

    def test_another_unique_index_may_be_in_the_way(self, client: Client15) -> None:
        client.insert(TYPED, *ROW)
        assert client.insert(TYPED, u32(2), *ROW[1:]).code == TUPLE_FOUND

    @pytest.mark.parametrize(
        ("row", "code", "message"),
        [
            ([b"x", *ROW[1:]], KEY_FIELD_TYPE, "expected unsigned"),
            ([b"", *ROW[1:]], KEY_FIELD_TYPE, "expected unsigned"),
            ([*ROW[:2], u64(1), ROW[3]], KEY_FIELD_TYPE, "expected NUM"),
            ([*ROW[:3], u32(1)], KEY_FIELD_TYPE, "expected NUM64"),
            (ROW[:3], ILLEGAL_PARAMS, "Tuple field 4 required by space format is missing"),
            ([], ILLEGAL_PARAMS, "Tuple field 1 required by space format is missing"),
        ],
    )
    def test_a_row_that_does_not_fit(
        self, client: Client15, row: list[bytes], code: int, message: str
    ) -> None:
        for flags in (0, ADD, REPLACE):
            answer = client.insert(TYPED, *row, flags=flags)
            assert answer.code == code
            assert answer.message.endswith(message)

    def test_a_space_there_is_not(self, client: Client15) -> None:
        answer = client.insert(9999, b"x")
        assert (answer.code, answer.message) == (NO_SUCH_SPACE, "Space '9999' does not exist")


class TestSelect:
    @pytest.fixture(autouse=True)
    def _rows(self, empty_spaces: None, client: Client15) -> None:
        for number in range(1, 6):
            client.insert(TYPED, u32(number), b"a" if number < 4 else b"b", u32(number), u64(number * 10))

    @staticmethod
    def ids(rows: list[list[bytes]]) -> list[int]:
        return [struct.unpack("<I", row[0])[0] for row in rows]

    def test_by_several_keys_in_their_order(self, client: Client15) -> None:
        answer = client.select(TYPED, [u32(4)], [u32(9)], [u32(1)], [u32(4)])
        assert (answer.count, self.ids(answer.tuples)) == (3, [4, 1, 4])

    def test_by_the_beginning_of_a_key(self, client: Client15) -> None:
        assert self.ids(client.select(TYPED, [b"a"], index=1).tuples) == [1, 2, 3]
        assert self.ids(client.select(TYPED, [b"b", u32(5)], index=1).tuples) == [5]
        assert self.ids(client.select(TYPED, []).tuples) == [1, 2, 3, 4, 5]

    @pytest.mark.parametrize("key", [u32(20), u64(20)])
    def test_a_long_number_may_be_asked_for_by_a_short_one(self, client: Client15, key: bytes) -> None:
        assert self.ids(client.select(TYPED, [key], index=2).tuples) == [2]

    @pytest.mark.parametrize(
        ("offset", "limit", "found"),
        [
            (0, 0, []),
            (0, 2, [4, 5]),
            (1, 2, [5, 1]),
            (2, 2, [1, 2]),
            (3, 99, [2, 3]),
            (5, 1, []),
            (2**32 - 1, 2**32 - 1, []),
        ],
    )
    def test_offset_and_limit_are_those_of_all_keys_together(
        self, client: Client15, offset: int, limit: int, found: list[int]
    ) -> None:
        answer = client.select(TYPED, [b"b"], [b"a"], index=1, offset=offset, limit=limit)
        assert self.ids(answer.tuples) == found

    @pytest.mark.parametrize(
        ("key", "index", "code"),
        [
            ([b"x"], 0, KEY_FIELD_TYPE),
            ([u32(1), u32(1)], 0, KEY_PART_COUNT),
            ([b"a", u64(1)], 1, KEY_FIELD_TYPE),
            ([u32(1)], 3, NO_SUCH_INDEX),
            ([u32(1)], 2**32 - 1, NO_SUCH_INDEX),
        ],
    )
    def test_a_key_that_does_not_fit(self, client: Client15, key: list[bytes], index: int, code: int) -> None:
        assert client.select(TYPED, key, index=index).code == code

    def test_a_hash_index_wants_whole_keys(self, client: Client15) -> None:
        client.insert(PAIRS, b"a", u32(1), b"x")
        assert client.select(PAIRS, [b"a", u32(1)]).tuples == [[b"a", u32(1), b"x"]]
        assert client.select(PAIRS, [b"a"]).code == EXACT_MATCH

    def test_a_space_there_is_not(self, client: Client15) -> None:
        assert client.select(0, [b"x"]).code == NO_SUCH_SPACE


class TestUpdate:
    @pytest.fixture(autouse=True)
    def _rows(self, empty_spaces: None, client: Client15) -> None:
        client.insert(TYPED, *ROW)
        client.insert(PLAIN, b"key", b"text", u32(5), u64(5))

    def test_fields_are_changed_by_their_numbers(self, client: Client15) -> None:
        answer = client.update(
            TYPED, [u32(1)], operation(1, 0, b"new"), operation(2, 1, u32(5)), operation(3, 1, u32(1))
        )
        assert (answer.count, answer.tuples) == (1, [])
        assert client.select(TYPED, [u32(1)]).tuples == [[u32(1), b"new", u32(15), u64(101)]]

    def test_the_row_is_answered_where_it_is_asked_for(self, client: Client15) -> None:
        answer = client.update(TYPED, [u32(1)], operation(1, 5, splice(3, 0, b"!")), flags=RETURN_TUPLE)
        assert answer.tuples == [[u32(1), b"one!", u32(10), u64(100)]]

    def test_of_a_row_that_is_not_there_nobody_looks_at_the_operations(self, client: Client15) -> None:
        answer = client.update(TYPED, [u32(2)], b"garbage", flags=RETURN_TUPLE)
        assert (answer.code, answer.count, answer.tuples) == (0, 0, [])

    def test_of_one_that_is_there_they_are_refused(self, client: Client15) -> None:
        assert client.update(TYPED, [u32(1)], b"\0\0\0\0").code == ILLEGAL_PARAMS
        assert client.update(TYPED, [u32(1)]).message == "no operations for update"

    def test_the_primary_key_may_change(self, client: Client15) -> None:
        assert client.update(TYPED, [u32(1)], operation(0, 1, u32(1))).count == 1
        assert client.select(TYPED, []).tuples == [[u32(2), *ROW[1:]]]
        assert client.select(TYPED, [u64(100)], index=2).count == 1

    def test_but_not_into_that_of_another_row(self, client: Client15) -> None:
        other = [u32(2), b"two", u32(20), u64(200)]
        client.insert(TYPED, *other)
        assert client.update(TYPED, [u32(1)], operation(0, 0, u32(2))).code == TUPLE_FOUND
        assert client.select(TYPED, []).tuples == [ROW, other]

    def test_fields_of_any_type_come_and_go(self, client: Client15) -> None:
        client.update(
            PLAIN, [b"key"], operation(1, 6, b""), operation(1, 7, b"\xff"), operation(4, 0, b"end")
        )
        assert client.select(PLAIN, [b"key"]).tuples == [[b"key", b"\xff", u32(5), u64(5), b"end"]]

    def test_bytes_that_look_like_numbers_can_be_calculated_with(self, client: Client15) -> None:
        client.update(PLAIN, [b"key"], operation(2, 1, u32(3)), operation(3, 8, u32(6)))
        assert client.select(PLAIN, [b"key"]).tuples == [[b"key", b"text", u32(8), u64(2**64 - 1)]]

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            (operation(1, 1, u32(1)), FIELD_TYPE),
            (operation(9, 0, b"x"), NO_SUCH_FIELD),
            (operation(2, 0, b"x"), KEY_FIELD_TYPE),
            (operation(3, 6, b""), ILLEGAL_PARAMS),
            (operation(0, 10, b""), 44),
            (operation(2, 1, b"x"), 41),
            (operation(1, 5, splice(-9, 0, b"")), 42),
            (operation(1, 9, u32(0)), 56),
        ],
    )
    def test_what_cannot_be_done_changes_nothing(self, client: Client15, change: bytes, code: int) -> None:
        assert client.update(TYPED, [u32(1)], operation(2, 0, u32(9)), change).code == code
        assert client.select(TYPED, []).tuples == [ROW]

    def test_the_key_is_the_whole_primary_key(self, client: Client15) -> None:
        client.insert(PAIRS, b"a", u32(1), b"x")
        set_it = operation(2, 0, b"y")
        assert client.update(PAIRS, [b"a"], set_it).code == EXACT_MATCH
        assert client.update(PAIRS, [], set_it).code == EXACT_MATCH
        assert client.update(PAIRS, [b"a", u32(1), b"x"], set_it).code == EXACT_MATCH
        assert client.update(PAIRS, [b"a", b"x"], set_it).code == KEY_FIELD_TYPE
        assert client.update(PAIRS, [b"a", u32(1)], set_it).count == 1

    def test_values_of_others_stay_what_they_were(self, client: Client15) -> None:
        client.call("put.kinds")
        client.update(PLAIN, [b"kinds"], operation(1, 1, u32(1)), operation(8, 0, b"new"))
        [kinds] = client.call("kinds", b"kinds").tuples
        assert kinds == [
            b"'kinds'",
            b"8",
            b"-7",
            str(2**40).encode(),
            b"1.9",
            b"True",
            b"None",
            b"b'\\xff'",
            b"'new'",
        ]

    def test_a_row_with_values_that_1_5_has_not_can_be_changed_and_not_be_answered(
        self, client: Client15
    ) -> None:
        client.call("put.nested")
        assert client.update(PLAIN, [b"nested"], operation(2, 1, u32(1))).count == 1
        assert client.call("kinds", b"nested").tuples == [[b"'nested'", b"[1]", b"6"]]
        answer = client.update(PLAIN, [b"nested"], operation(2, 1, u32(1)), flags=RETURN_TUPLE)
        assert (answer.code, answer.message) == (
            PROC_RET,
            "Return type 'table' is not supported in the binary protocol",
        )
        assert client.call("kinds", b"nested").tuples[0][2] == b"6", (
            "what is answered with an error is undone"
        )
        assert client.update(PLAIN, [b"nested"], operation(1, 1, u32(1))).code == PROC_RET
        assert client.update(PLAIN, [b"nested"], operation(1, 0, b"plain")).count == 1


class TestDelete:
    def test_a_row_is_removed_and_counted(self, client: Client15) -> None:
        client.insert(TYPED, *ROW)
        assert client.delete(TYPED, u32(1)).count == 1
        assert client.delete(TYPED, u32(1)).count == 0

    def test_it_is_answered_where_it_is_asked_for(self, client: Client15) -> None:
        client.insert(TYPED, *ROW)
        assert client.delete(TYPED, u32(1), flags=RETURN_TUPLE).tuples == [ROW]
        answer = client.delete(TYPED, u32(1), flags=RETURN_TUPLE)
        assert (answer.count, answer.tuples) == (0, [])

    def test_without_flags_as_it_was_before(self, client: Client15) -> None:
        client.insert(TYPED, *ROW)
        assert client.request(DELETE_1_3, u32(TYPED) + packed_tuple(u32(1))).count == 1

    def test_the_key_is_the_whole_primary_key(self, client: Client15) -> None:
        client.insert(PAIRS, b"a", u32(1))
        assert client.delete(PAIRS, b"a").code == EXACT_MATCH
        assert client.delete(PAIRS, b"a", b"b").code == KEY_FIELD_TYPE
        assert client.delete(PAIRS, b"a", u32(1)).count == 1
