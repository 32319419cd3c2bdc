"""Values of which some cannot be packed, or not by compiled code alone."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from iproto_server.box.types.field_type import FieldType
from iproto_server.codec import msgpack as codec
from tests.codec.test_msgpack import values

odd_values: Final = st.recursive(
    values
    | st.floats()
    | st.integers(-(2**70), 2**70)
    | st.text(st.characters(), max_size=4)
    | st.builds(lambda raw: codec.Raw(codec.pack(raw)), values)
    | st.builds(bytearray, st.binary(max_size=3))
    | st.sampled_from([FieldType.ANY, object, 1j, range(3), frozenset()]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.booleans() | st.none(), inner, max_size=4)
    ),
    max_leaves=12,
)
