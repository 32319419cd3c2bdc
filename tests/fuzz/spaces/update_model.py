"""A model of successful update operations, on Python's values.

It has no packed bytes, no optimizations for unchanged parts of a tuple, and no refusals: callers know that
the operations succeeded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iproto_server.box.types.json_path import TokenKind, parse_json_path
from iproto_server.codec import msgpack as codec

Container = list[Any] | dict[Any, Any]
Place = tuple[Container, Any]


class NoOpinion(Exception):
    """The model does not know: sums of floats and decimals are tested elsewhere."""


def model(operations: Sequence[Any], row: list[Any], names: Mapping[str, int], index_base: int) -> list[Any]:
    """Apply valid operations to a row.

    Parameters:
        operations: The operations of a request.
        row: The row, which is changed in place.
        names: The numbers of fields by their names.
        index_base: The number of the first field in the request.

    Returns:
        The row.

    Raises:
        NoOpinion: The result is not known here.
        LookupError: An operation leads nowhere, and should have been refused.
        TypeError: The same.
    """
    for opcode, field, *arguments in operations:
        container, key = _place(row, field, names, index_base)
        if isinstance(container, dict) and not isinstance(key, str):
            key += 1  # `[1]` may lead to the integer key 1
        if opcode == "=":
            _assign(container, key, arguments[0])
        elif opcode == "!":
            if isinstance(container, list):
                # Counted from the end, the position after the last field is -1.
                container.insert(key if key >= 0 else len(container) + 1 + key, arguments[0])
            else:
                assert key not in container
                container[key] = arguments[0]
        elif opcode == "#":
            if isinstance(container, list):
                start = key if key >= 0 else len(container) + key
                del container[start : start + (arguments[0] & (2**32 - 1))]
            else:
                container.pop(key, None)
        elif opcode == ":":
            offset, cut, paste = arguments
            container[key] = _spliced(container[key], offset, cut, paste, index_base)
        else:
            container[key] = _computed(opcode, container[key], arguments[0])
    return row


def _place(row: list[Any], field: object, names: Mapping[str, int], index_base: int) -> Place:
    """Return the target of an operation: its container, and the index or key."""
    if isinstance(field, int):
        return row, field - index_base if field >= index_base else field
    assert isinstance(field, str)
    if field in names:
        return row, names[field]
    container: Any = row
    first, *rest = parse_json_path(field)
    key: Any = first.index if first.kind is TokenKind.INDEX else names[first.key]
    for token in rest[:-1]:
        container = container[key + 1 if isinstance(container, dict) and isinstance(key, int) else key]
        key = token.target
    return container, key


def _assign(container: Container, key: Any, value: object) -> None:
    if isinstance(container, list) and key == len(container):
        container.append(value)
    else:
        container[key] = value


def _computed(opcode: str, old: object, argument: object) -> int:
    if type(old) is not int or type(argument) is not int:
        raise NoOpinion
    if opcode in "+-":
        result = old + argument if opcode == "+" else old - argument
        assert -(2**63) <= result < 2**64
        return result
    assert old >= 0
    assert argument >= 0
    return {"&": old & argument, "|": old | argument, "^": old ^ argument}[opcode]


def _spliced(old: object, offset: int, cut: int, paste: str, index_base: int) -> object:
    assert isinstance(old, str)
    text = old.encode("utf-8", "surrogateescape")
    start = offset - index_base if offset >= 0 else len(text) + 1 + offset
    assert start >= 0
    start = min(start, len(text))
    end = max(start, len(text) + cut) if cut < 0 else start + cut
    spliced = text[:start] + paste.encode("utf-8", "surrogateescape") + text[end:]
    return spliced.decode("utf-8", "surrogateescape")


def canonical(value: object) -> object:
    """Return a form that equal values share, whatever their order of keys, but not 1, 1.0 and True."""
    if isinstance(value, list):
        return [canonical(item) for item in value]
    if isinstance(value, dict):
        return sorted((codec.pack(key), canonical(item)) for key, item in value.items())
    return codec.pack(value)
