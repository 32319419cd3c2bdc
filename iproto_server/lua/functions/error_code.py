"""The numbers, names and wordings of box errors for `internal/box/values/error.lua`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from iproto_server.error_codes import ErrorCode

LAST: Final = 218
"""The last number of Tarantool 2.6, whose `box.error` has no others."""

LATER: Final = {ErrorCode.REPLICA_ID_IS_RESERVED, ErrorCode.SQL_KEYWORD_IS_RESERVED}
"""Errors with lower numbers that have no names in Tarantool 2.6."""

OTHER_NAMES: Final = {ErrorCode.CREDS_MISMATCH: "PASSWORD_MISMATCH"}
"""Names that Tarantool 2.6 has for errors."""


def error_codes() -> bytes:
    """Lines with a number, a name (`-` for none) and a printf-style wording."""
    lines = []
    for code in ErrorCode:
        if code <= LAST:
            name = "-" if code in LATER else OTHER_NAMES.get(code, code.name)
            lines.append(f"{code.value} {name} {code.template}")
    return "\n".join(lines).encode()


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {"error_codes": error_codes}
