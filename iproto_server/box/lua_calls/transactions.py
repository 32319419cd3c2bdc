"""`box.begin`, `box.commit` and `box.rollback` for CALL.

In a stream they begin and end its transaction (`server/requests/streams.py`). Outside of a
stream a call is one transaction: it cannot end another one, nor leave one open.

Source: Tarantool reference, "box.begin()", "box.commit()", "box.rollback()".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from iproto_server.box.api.lua_arguments import argument, illegal, is_of_type
from iproto_server.box.txn.interactive_transaction import Isolation
from iproto_server.errors import BoxError, ErrorCode

Call = Callable[[list[Any]], object]

_LEVELS: Final[Mapping[object, Isolation]] = {
    **{level.value: level for level in Isolation},
    **{level.name: level for level in Isolation},
    **{level.name.lower().replace("_", "-"): level for level in Isolation},
}


class BeginOptions(NamedTuple):
    """The options of `box.begin`.

    Attributes:
        timeout: seconds after which the transaction fails; 0: no timeout.
        isolation: its isolation level.
    """

    timeout: float = 0.0
    isolation: Isolation = Isolation.DEFAULT

    @classmethod
    def of(cls, arguments: list[Any]) -> BeginOptions:
        """Read the options of a call.

        Raises:
            BoxError: ILLEGAL_PARAMS if they are not a table, or for an unknown option or an invalid value.
        """
        given = argument(arguments, 0)
        if given is None or given == []:
            return cls()
        if not isinstance(given, Mapping):
            raise illegal("options should be a table")
        for name in given:
            if name not in ("timeout", "txn_isolation"):
                raise illegal(f"unexpected option '{name}'")
        timeout, isolation = given.get("timeout"), given.get("txn_isolation")
        if timeout is not None and not (is_of_type(timeout, (int, float)) and timeout > 0):
            raise illegal("timeout must be a number greater than 0")
        level = Isolation.DEFAULT
        if isolation is not None:
            if not is_of_type(isolation, (str, int)) or isolation not in _LEVELS:
                raise illegal("txn_isolation must be one of box.txn_isolation_level (keys or values)")
            level = _LEVELS[isolation]
        return cls(float(timeout or 0), level)


def _begin(arguments: list[Any]) -> object:
    BeginOptions.of(arguments)
    raise BoxError(ErrorCode.FUNCTION_TX_ACTIVE)


TRANSACTION_CALLS: Final[Mapping[str, Call]] = {
    "box.begin": _begin,
    "box.commit": lambda arguments: None,
    "box.rollback": lambda arguments: None,
}
"""Functions of a call's arguments outside of streams, by name."""
