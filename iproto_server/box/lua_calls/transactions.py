"""`box.begin`, `box.commit` and `box.rollback` as clients CALL them.

In a stream they begin and end its transaction (`server/requests/streams.py`). Outside of one a call is a
transaction of its own: there is none to end, and one that was begun would be left open when the call returns.

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
        timeout: seconds after which the transaction cannot go on; 0 for no such time.
        isolation: what it sees of others' commits.
    """

    timeout: float = 0.0
    isolation: Isolation = Isolation.DEFAULT

    @classmethod
    def of(cls, arguments: list[Any]) -> BeginOptions:
        """Those among the arguments of a call.

        Raises:
            BoxError: ILLEGAL_PARAMS for no table, an option there is not, or a value that it cannot have.
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
"""The functions by name, outside of streams; each takes the arguments of the call."""
