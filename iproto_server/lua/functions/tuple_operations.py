"""Update operations of tuples that compiled code does not know, for `internal/box/values/tuple.lua`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from iproto_server.errors import BoxError

logger = logging.getLogger("iproto_server.lua")

Changed = tuple[bytes] | tuple[None, int, bytes, bytes]


def tuple_update(row: bytes, operations: bytes, names: bytes | None, is_upsert: bool) -> Changed:
    """Apply operations to a row.

    Parameters:
        row: the packed row.
        operations: the packed operations, which count fields from 1.
        names: the packed names of its fields, in order; None if they have none.
        is_upsert: whether operations that do not fit the row are skipped.

    Returns:
        The new row; or None with an error's code, message and type.
    """
    from iproto_server.box.update import apply_update, apply_upsert, parse_update
    from iproto_server.errors import BoxError
    from iproto_server.native._native import unpack

    numbers = {name: number for number, name in enumerate(unpack(names))} if names else {}
    try:
        parsed = parse_update(operations, numbers, 1)
        if is_upsert:
            return (apply_upsert(parsed, row, on_skipped=_log_skipped),)
        return (apply_update(parsed, row),)
    except BoxError as error:
        return None, error.code, error.message.encode("utf-8", "surrogateescape"), error.type.encode()


def _log_skipped(error: BoxError) -> None:
    logger.error("UPSERT operation failed: %s", error.message)


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {"tuple_update": tuple_update}
