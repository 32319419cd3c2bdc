"""What to do about rows of another version of Tarantool that this server refuses."""

from __future__ import annotations

from typing import Final

from iproto_server.box.catalog.foreign.versions import FIRST_READABLE, UNKNOWN, Version
from iproto_server.errors import BoxError, ErrorCode

UNSERVED: Final = "drop or alter it with Tarantool, and take a snapshot there"
"""For an object that this server does not have."""

_UNSERVED_CODES: Final = frozenset({ErrorCode.UNSUPPORTED, ErrorCode.NO_SUCH_ENGINE})


def advice_about(error: BaseException, version: Version) -> str | None:
    """What to do about a row that cannot be loaded.

    Parameters:
        error: why it cannot be loaded.
        version: the version of the schema, as far as known.

    Returns: the end of a sentence; None if the row may be damaged.
    """
    if UNKNOWN < version < FIRST_READABLE:
        first, written = (".".join(map(str, each)) for each in (FIRST_READABLE, version))
        return (
            f"the schema is that of Tarantool {written}, and this server reads those since {first}: start "
            "Tarantool 1.10 with a copy of the files, and call box.schema.upgrade() and box.snapshot() there"
        )
    return UNSERVED if isinstance(error, BoxError) and error.code in _UNSERVED_CODES else None
