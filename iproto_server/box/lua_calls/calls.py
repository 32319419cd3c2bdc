"""The functions under `box.` that clients can call: `box.space.NAME:select`, `box.schema.…`, `box.info`.

They follow Tarantool's Lua functions: options are a map after the positional arguments, and field numbers
count from 1.

Source: Tarantool reference, "Submodule box.space", "Submodule box.index", "Submodule box.schema".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from iproto_server.box.access.access_control import GUEST
from iproto_server.box.api.lua_arguments import (
    NUMBER,
    TABLE,
    Types,
    argument,
    illegal,
    is_of_type,
    lua_type,
    lua_value,
    options,
)
from iproto_server.box.api.space import Space
from iproto_server.box.api.space_index import Index
from iproto_server.box.lua_calls.events import event_calls
from iproto_server.box.lua_calls.sequence import SEQUENCE_METHODS, schema_calls
from iproto_server.box.lua_calls.space import INDEX_METHODS, SPACE_METHODS, describe_space
from iproto_server.box.lua_calls.state import state_calls
from iproto_server.box.lua_calls.transactions import TRANSACTION_CALLS
from iproto_server.errors import BoxError, ErrorCode

if TYPE_CHECKING:
    from iproto_server.box.api.box import Box
    from iproto_server.box.api.ddl.users import Roles, Users

Call = Callable[[list[Any]], object]

_SPACE = re.compile(r"box\.space\.(?P<space>[^.:]+)(?:\.index\.(?P<index>[^.:]+))?:(?P<method>\w+)")
_SEQUENCE = re.compile(r"box\.sequence\.(?P<sequence>[^.:]+):(?P<method>\w+)")
_NIL_RESULT = (None,)


class RemoteCalls:
    """Finds and runs the functions under `box.`.

    Parameters:
        box: the box.
    """

    def __init__(self, box: Box) -> None:
        self._box = box
        schema, session = box.schema, box.session
        self._functions: dict[str, Call] = {
            "box.snapshot": lambda arguments: box.snapshot(),
            "box.backup.start": self._start_backup,
            "box.backup.stop": lambda arguments: box.backup.stop(),
            "box.session.id": lambda arguments: session.id(),
            "box.session.uid": lambda arguments: session.uid(),
            "box.session.euid": lambda arguments: session.euid(),
            "box.session.user": lambda arguments: session.user(),
            "box.session.effective_user": lambda arguments: session.effective_user(),
            "box.session.su": self._su,
            "box.session.type": lambda arguments: session.type(),
            "box.session.sync": lambda arguments: session.sync(),
            "box.session.peer": self._peer,
            "box.session.exists": self._session_exists,
            "box.schema.create_space": self._create_space,
            "box.schema.space.create": self._create_space,
            "box.schema.user.create": self._create_user,
            "box.schema.user.passwd": lambda arguments: schema.user.passwd(
                argument(arguments, 0), argument(arguments, 1)
            ),
            "box.schema.user.password": lambda arguments: schema.user.password(argument(arguments, 0)),
            "box.schema.user.enable": lambda arguments: schema.user.enable(argument(arguments, 0)),
            "box.schema.user.disable": lambda arguments: schema.user.disable(argument(arguments, 0)),
            "box.schema.user.info": lambda arguments: schema.user.info(argument(arguments, 0)),
            "box.schema.role.create": lambda arguments: schema.role.create(
                argument(arguments, 0), **options(arguments, 1, {"if_not_exists": bool})
            ),
            "box.schema.role.info": self._role_info,
            "box.schema.func.create": self._create_function,
            "box.schema.func.exists": lambda arguments: schema.func.exists(argument(arguments, 0)),
            "box.schema.func.drop": lambda arguments: schema.func.drop(
                argument(arguments, 0), **options(arguments, 1, {"if_exists": bool})
            ),
            **event_calls(box),
            **state_calls(box),
            **TRANSACTION_CALLS,
            **schema_calls(box),
            **_calls_of("box.schema.user", schema.user),
            **_calls_of("box.schema.role", schema.role),
        }

    def find(self, name: str) -> Call:
        """The function of that name.

        Raises:
            BoxError: NO_SUCH_PROC (33) if the function, space, index or sequence does not exist.
        """
        function = self._functions.get(name)
        if function is not None:
            return lambda arguments: function(lua_value(arguments))
        match = _SEQUENCE.fullmatch(name)
        if match is not None:
            return self._of_sequence(name, match["sequence"], match["method"])
        match = _SPACE.fullmatch(name)
        if match is None or match["space"] not in self._box.space:
            raise BoxError(ErrorCode.NO_SUCH_PROC, name)
        space = self._box.space[match["space"]]
        if match["index"] is None:
            methods: Mapping[str, Callable[..., object]] = SPACE_METHODS
            target: Space | Index = space
        else:
            if match["index"] not in space.index:
                raise BoxError(ErrorCode.NO_SUCH_PROC, name)
            methods = INDEX_METHODS
            target = space.index[match["index"]]
        method = methods.get(match["method"])
        if method is None:
            raise BoxError(ErrorCode.NO_SUCH_PROC, name)
        return lambda arguments: method(target, lua_value(arguments))

    def _of_sequence(self, name: str, sequence_name: str, method_name: str) -> Call:
        method = SEQUENCE_METHODS.get(method_name)
        if method is None or sequence_name not in self._box.sequence:
            raise BoxError(ErrorCode.NO_SUCH_PROC, name)
        sequence = self._box.sequence[sequence_name]
        return lambda arguments: method(sequence, lua_value(arguments))

    def _create_space(self, arguments: list[Any]) -> object:
        name = argument(arguments, 0)
        if not isinstance(name, str):
            raise illegal("name should be a string")
        given = options(arguments, 1, _SPACE_OPTIONS)
        if isinstance(given.get("format"), dict):
            given["format"] = list(given["format"].values())
        space = self._box.schema.create_space(name, **given)
        return describe_space(space)

    def _start_backup(self, arguments: list[Any]) -> list[str]:
        if not arguments:
            return self._box.backup.start()
        back = arguments[0]
        if not is_of_type(back, (int, float)):
            raise BoxError.procedure(f"bad argument #1 to '?' (number expected, got {lua_type(back)})")
        return self._box.backup.start(back)

    def _peer(self, arguments: list[Any]) -> object:
        session_id = argument(arguments, 0)
        if session_id is not None and not isinstance(session_id, int):
            raise illegal("session id should be a number")
        return _one(self._box.session.peer(session_id))

    def _su(self, arguments: list[Any]) -> None:
        """Act as another user. A function to call as that user cannot be sent."""
        if not arguments:
            raise BoxError.procedure("session.su(): bad arguments")
        # As in Lua, a value that is not a number counts as 0.
        user = arguments[0] if is_of_type(arguments[0], (str, int)) else GUEST
        self._box.access.for_session(user)
        if len(arguments) > 1:
            given = lua_type(arguments[1])
            raise BoxError.procedure(f"bad argument #2 to '?' (function expected, got {given})")
        self._box.session.su(user)

    def _session_exists(self, arguments: list[Any]) -> bool:
        if not arguments:
            return True
        session_id = arguments[0]
        if not isinstance(session_id, int):
            raise BoxError.procedure("session.exists(sid): bad arguments")
        return self._box.session.exists(session_id)

    def _role_info(self, arguments: list[Any]) -> object:
        if argument(arguments, 0) is None:
            raise BoxError(ErrorCode.NO_SUCH_ROLE, "nil")
        return self._box.schema.role.info(arguments[0])

    def _create_user(self, arguments: list[Any]) -> None:
        given = options(arguments, 1, {"password": str, "if_not_exists": bool})
        self._box.schema.user.create(argument(arguments, 0), **given)

    def _create_function(self, arguments: list[Any]) -> None:
        given = options(arguments, 1, _FUNCTION_OPTIONS)
        self._box.schema.func.create(argument(arguments, 0), **given)


def _one(value: object) -> object:
    """A result of exactly one value, nil included; None alone means no value."""
    return _NIL_RESULT if value is None else value


def _calls_of(prefix: str, principals: Users | Roles) -> dict[str, Call]:
    """The functions that users and roles share."""

    def drop(arguments: list[Any]) -> None:
        principals.drop(argument(arguments, 0), **options(arguments, 1, {"if_exists": bool}))

    def grant(arguments: list[Any]) -> None:
        name, privileges, object_type, object_name = (argument(arguments, number) for number in range(4))
        given = options(arguments, 4, {"if_not_exists": bool, "grantor": (str, int, float)})
        principals.grant(name, privileges, object_type, object_name, **given)

    def revoke(arguments: list[Any]) -> None:
        name, privileges, object_type, object_name = (argument(arguments, number) for number in range(4))
        given = options(arguments, 4, {"if_exists": bool})
        principals.revoke(name, privileges, object_type, object_name, **given)

    return {
        f"{prefix}.exists": lambda arguments: principals.exists(argument(arguments, 0)),
        f"{prefix}.drop": drop,
        f"{prefix}.grant": grant,
        f"{prefix}.revoke": revoke,
    }


_FUNCTION_OPTIONS: dict[str, Types] = {
    **dict.fromkeys(("setuid", "if_not_exists", "is_deterministic", "is_sandboxed", "is_multikey"), bool),
    **dict.fromkeys(("language", "body", "returns", "aggregate", "comment"), str),
    **dict.fromkeys(("param_list", "exports"), TABLE),
}

_SPACE_OPTIONS: dict[str, Types] = {
    "if_not_exists": bool,
    "engine": str,
    "id": NUMBER,
    "field_count": NUMBER,
    "user": (str, int, float),
    "format": TABLE,
    "is_local": bool,
    "temporary": bool,
    "type": str,
    "is_sync": bool,
}
