"""Filters for blocks with rows of some spaces."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from pyspark_tarantool.source.io.block_filter import BlockFilter, quick_search

octets = st.sampled_from([0x10, 0x11, 0xCC, 0xCD, 0xCE, 0xCF, 0x00, 0x01, 0x02, 0x18, 0x7F])


@pytest.mark.parametrize("space_id", [0, 0x10, 0x7F, 0x80, 0xFF, 280, 0xFFFF, 70_000, 2**31 - 1])
@pytest.mark.parametrize("before", [b"", b"\x10", b"\x10\xcd\x01", bytes(1000)])
@pytest.mark.parametrize("behind", [b"", b"\x10", bytes(1000)])
def test_a_block_with_a_row_of_the_space_has_it(space_id: int, before: bytes, behind: bytes) -> None:
    block_filter = BlockFilter({space_id, 500})
    assert block_filter.matches(before + b"\x10" + codec.pack(space_id) + behind)
    assert not block_filter.matches(before + b"\x11" + codec.pack(space_id)[:-1])


class TestCompiledCode:
    @given(
        data=st.lists(octets).map(bytes),
        spaces=st.sets(st.sampled_from([1, 0x10, 280, 512, 513]), min_size=1),
    )
    @example(b"\x10", {1})
    def test_finds_the_same(self, data: bytes, spaces: set[int]) -> None:
        block_filter = BlockFilter(spaces)
        assert block_filter.matches(data) == (block_filter._pattern.search(data) is not None)

    @pytest.mark.parametrize(
        "arguments",
        [(), ("", b"x", ()), (b"", b"", ()), (b"", b"xy", ()), (b"", b"x", [b"y"]), (b"", b"x", (b"",))],
    )
    def test_refuses_what_it_is_not_made_for(self, arguments: tuple[Any, ...]) -> None:
        with pytest.raises(TypeError):
            quick_search(*arguments)
