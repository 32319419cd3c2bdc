"""What comes of a call, in words that tests compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Bytes that were something once: cut short, lengthened, or with a few bytes changed."""
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, 3))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) + draw(st.binary(max_size=3))


def outcome(function: Callable[..., Any], *arguments: Any) -> str:
    """What comes of a call, in all details: its result, or its error."""
    try:
        return told(function(*arguments))
    except Exception as error:  # noqa: BLE001  # whatever it is, it is compared
        return f"{type(error).__name__}: {error}"


def told(result: Any) -> str:
    if isinstance(result, codec.Raw):
        return f"{type(result).__name__} {result.raw!r}"
    if isinstance(result, list | tuple):
        return f"{type(result).__name__}[{', '.join(map(told, result))}]"
    if isinstance(result, dict):
        return "{" + ", ".join(f"{told(key)}: {told(value)}" for key, value in result.items()) + "}"
    return f"{type(result).__name__} {result!r}"
