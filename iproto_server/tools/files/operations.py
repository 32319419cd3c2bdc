"""Converts the field numbers of update operations to another index base."""

from __future__ import annotations

from iproto_server.codec import msgpack as codec
from iproto_server.codec.msgpack import Kind, Raw

_SPLICE = codec.pack(":")


def rebase(operations_raw: bytes, index_base: int, wanted: int) -> list[list[Raw]]:
    """Make update operations count from another number than they do.

    Numbers of fields change, and offsets of splices; what is below 0 counts from the end and stays. Names
    stay, and so do paths, which always count from 1.

    Parameters:
        operations_raw: the operations, a packed array.
        index_base: what they count from.
        wanted: what they are to count from.

    Returns:
        The operations with packed arguments.
    """
    rebased: list[list[Raw]] = []
    for operation in codec.split_array(operations_raw):
        arguments = codec.split_array(operation)
        places = (1, 2) if arguments and arguments[0] == _SPLICE else (1,)
        for place in places:
            if len(arguments) > place and codec.kind(arguments[place]) is Kind.UINT:
                arguments[place] = codec.pack(codec.unpack(arguments[place]) - index_base + wanted)
        rebased.append([Raw(argument) for argument in arguments])
    return rebased
