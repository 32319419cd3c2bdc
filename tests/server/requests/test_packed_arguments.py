"""Arguments that stay packed: the same on the fast path and beside it, with the client's exact bytes."""

from __future__ import annotations

import logging
from typing import Any, cast

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import Application, Box, ManualClock, Raw, packed_arguments, unpack
from iproto_server.app import Procedure, Procedures
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol.constants import PROTOCOL_VERSION, Key, RequestType
from iproto_server.server.limits.rate_limited_log import RateLimitedLog
from iproto_server.server.requests.call import unpack_arguments
from iproto_server.server.requests.dispatcher import Dispatcher
from tests.native.requests.sides import Client, no_coroutines
from tests.plugins.profiles import examples

APP = Application("packed")


@APP.procedure("keep")
@packed_arguments(0, 2)
def keep(box: Box, *arguments: Any) -> object:
    kinds = [type(argument).__name__ for argument in arguments]
    assert [kind == "Raw" for kind in kinds] == [number in (0, 2) for number in range(len(kinds))]
    return tuple(arguments)


def find(name: str) -> Any:
    return keep if name == "found.keep" else None


APP.procedures_under("found.")(find)


class Side:
    """A dispatcher with one client, which answers on the fast path or beside it."""

    def __init__(self, is_fast: bool) -> None:
        box = Box(clock=ManualClock())
        log = RateLimitedLog(logging.getLogger(__name__), box.clock)
        self._dispatcher = Dispatcher(box, Procedures([APP]), (), PROTOCOL_VERSION, no_coroutines, log)
        self._handle = self._dispatcher.handle if is_fast else self._dispatcher._answer
        self._client = Client(box, "admin")

    def call(
        self, arguments: bytes, name: str = "keep", kind: int = RequestType.CALL, *, first: bool = False
    ) -> bytes:
        """The response to a call with packed arguments, which come before the name if `first`."""
        parts = [bytes((Key.FUNCTION_NAME,)) + msgpack.packb(name), bytes((Key.TUPLE,)) + arguments]
        header = msgpack.packb({int(Key.REQUEST_TYPE): kind, int(Key.SYNC): 7})
        self._handle(cast(Any, self._client), header + b"\x82" + b"".join(parts[::-1] if first else parts))
        response = self._client.received.pop()
        assert isinstance(response, bytes)
        return response


def data(count: int, items: bytes) -> bytes:
    """The end of a response with so many values."""
    return b"\xdd" + count.to_bytes(4, "big") + items


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@examples(300)
@given(st.lists(VALUES, max_size=5), st.booleans(), st.sampled_from(["keep", "found.keep"]))
def test_both_paths_answer_what_was_sent(values: list[Any], first: bool, name: str) -> None:
    packed = msgpack.packb(values)
    answers = {Side(is_fast).call(packed, name, first=first) for is_fast in (True, False)}
    (answer,) = answers
    assert answer.endswith(data(len(values), packed[1:]))


@pytest.mark.parametrize("is_fast", [True, False])
@pytest.mark.parametrize(
    "item",
    [
        b"\xcd\x00\x05",
        b"\xca\x3f\x80\x00\x00",
        b"\xdf\x00\x00\x00\x01\xa1a\x01",
        b"\xd9\x01\xff",
        b"\xc7\x01\x63\x00",
    ],
)
def test_the_bytes_of_a_packed_argument_stay_as_they_are(item: bytes, is_fast: bool) -> None:
    """Numbers and lengths in longer forms, texts that are no UTF-8, and extensions of unknown types."""
    assert Side(is_fast).call(b"\x91" + item).endswith(data(1, item))


@pytest.mark.parametrize("is_fast", [True, False])
@pytest.mark.parametrize(
    "arguments",
    [b"\x91\xc1", b"\x92\x01", b"\x91\x91", b"\x91" * 1100 + b"\x90", b"\x81\x01\x02", b"\x05", b""],
)
def test_malformed_arguments_are_refused(arguments: bytes, is_fast: bool) -> None:
    response = Side(is_fast).call(arguments)
    assert b"Invalid MsgPack - packet body" in response


@pytest.mark.parametrize("is_fast", [True, False])
def test_calls_of_1_6_keep_them_packed_too(is_fast: bool) -> None:
    assert (
        Side(is_fast)
        .call(b"\x93\x01\x02\x03", kind=RequestType.CALL_16)
        .endswith(data(3, b"\x91\x01\x91\x02\x91\x03"))
    )


@pytest.mark.parametrize("numbers", [(-1,), (32,), (0, 99)])
def test_only_the_first_32_arguments_may_stay_packed(numbers: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="from 0 to 31"):
        packed_arguments(*numbers)

    def function(box: Box) -> None: ...

    function.packed_arguments = numbers  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="from 0 to 31"):
        Procedure("name", function, False)


def test_a_procedure_says_which_arguments_stay_packed() -> None:
    assert Procedure("keep", keep, False).packed == 0b101
    assert Procedure("other", lambda box: None, False).packed == 0


def test_arguments_nested_too_deep_are_an_error_of_the_request() -> None:
    with pytest.raises(BoxError) as raised:
        unpack_arguments(b"\x91" * 1030 + b"\x90")
    assert raised.value.code == ErrorCode.INVALID_MSGPACK


def test_a_procedure_may_look_into_a_packed_argument() -> None:
    assert unpack(Raw(b"\x92\x01\xa1a").raw) == [1, "a"]
