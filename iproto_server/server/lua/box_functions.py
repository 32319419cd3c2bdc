"""What Lua's `box` leaves to Python: definitions, triggers, sessions, and all that is rare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from iproto_server.box import Box, Tuple
from iproto_server.box.access.access_control import ADMIN
from iproto_server.box.access.session import SessionFacade
from iproto_server.box.api.lua_arguments import argument, lua_type, lua_value
from iproto_server.box.api.space import Space
from iproto_server.box.api.space_index import Index
from iproto_server.box.catalog.system_space_ids import FUNC
from iproto_server.box.lua_calls.calls import RemoteCalls
from iproto_server.box.lua_calls.sequence import describe_sequence
from iproto_server.box.lua_calls.space import INDEX_METHODS, SPACE_METHODS, describe_space
from iproto_server.box.tuple.tuple import NIL
from iproto_server.box.txn.trigger import TriggerList
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode

Function = Callable[..., object]


class BoxFunctions:
    """The functions of `functions.ask` in Lua, by name.

    Parameters:
        box: the database.
    """

    def __init__(self, box: Box) -> None:
        self._forget_storage: Callable[[int], object] = lambda session_id: None
        self._box = box
        self._remote = RemoteCalls(box)
        self._functions: dict[str, Callable[[list[Any]], object]] = {
            "describe_space": self._describe_space,
            "describe_spaces": lambda arguments: [describe_space(space) for space in box.space],
            "space": self._of_space,
            "index": self._of_index,
            "session": self._of_session,
            "session_su": self._act_as,
            "open_console": self._open_console,
            "close_console": self._close_console,
            "run_session_triggers": self._run_session_triggers,
            "cfg_values": lambda arguments: dict(box.cfg),
            "is_read_only": lambda arguments: box.is_read_only,
            "keep_storage": self._keep_storage,
            "describe_function": self._describe_function,
            "function_names": lambda arguments: list(box.catalog.users.functions),
            "set_hooks": self._set_hooks,
            "describe_sequence": self._describe_sequence,
            "on_commit": lambda arguments: box.on_commit(arguments[0]),
            "on_rollback": lambda arguments: box.on_rollback(arguments[0]),
        }

    def ask(self, name: str, arguments: list[Any]) -> object:
        """Call a function by name, in a transaction of its own if none runs.

        Parameters:
            name: its name: one of this class, or one under `box.` that clients can call.
            arguments: its arguments.

        Returns:
            Its result: None for no value, a Python tuple for several.

        Raises:
            BoxError: as the function.
        """
        function = self._functions.get(name)
        if function is None:
            function = self._remote.find(name)
        if self._box.is_in_txn():
            return function(arguments)
        return self._box.run(self._box.session.current, function, arguments)

    def _describe_space(self, arguments: list[Any]) -> object:
        space_id = arguments[0]
        if space_id not in self._box.catalog.spaces:
            return None
        return describe_space(self._box.space[space_id])

    def _describe_function(self, arguments: list[Any]) -> object:
        function = self._box.catalog.users.functions.get(arguments[0])
        rows = [] if function is None else self._box.catalog.rows(FUNC, 0, [function.id])
        if not rows:
            return None
        [row] = rows
        names = self._box.catalog.spaces[FUNC].format.names
        described = {name: row[number] for name, number in names.items() if number < len(row)}
        shown: dict[str, Any] = {name: described[name] for name in _SHOWN_OF_FUNCTIONS if name in described}
        return {
            **shown,
            "setuid": bool(described["setuid"]),
            "is_multikey": bool(described.get("opts", {}).get("is_multikey")),
            "exports": {"lua": "LUA" in described["exports"], "sql": "SQL" in described["exports"]},
        }

    def _describe_sequence(self, arguments: list[Any]) -> object:
        name = arguments[0]
        return describe_sequence(self._box.sequence[name]) if name in self._box.sequence else None

    def _of_space(self, arguments: list[Any]) -> object:
        space_id, method, *rest = arguments
        space = self._box.space[space_id]
        own = _SPACE_METHODS.get(method)
        if own is not None:
            return own(space, rest)
        return SPACE_METHODS[method](space, lua_value(rest))

    def _of_index(self, arguments: list[Any]) -> object:
        space_id, index_id, method, *rest = arguments
        index = self._box.space[space_id].index[index_id]
        own = _INDEX_METHODS.get(method)
        if own is not None:
            return own(index, rest)
        return INDEX_METHODS[method](index, lua_value(rest))

    def _set_hooks(self, arguments: list[Any]) -> None:
        """Call functions of Lua whenever something has changed: their names, and the functions."""
        names, *functions = arguments
        hooks: dict[str, Function] = {str(name): each for name, each in zip(names, functions, strict=True)}
        self._forget_storage = hooks["storage"]
        self._box.catalog.on_space_change = hooks["space"]
        self._box.catalog.users.on_function_change = hooks["function"]
        self._box.watch("box.status", lambda key, value: hooks["read_only"]())

    def remove_hooks(self) -> None:
        """Call no functions of Lua any more."""
        self._forget_storage = lambda session_id: None
        self._box.catalog.on_space_change = lambda space_id: None
        self._box.catalog.users.on_function_change = lambda name: None

    def _keep_storage(self, arguments: list[Any]) -> bool:
        """Let Lua code forget the storage of a session at its end. Returns whether the session is open."""
        session_id = arguments[0]
        sessions = self._box.session.sessions
        session = sessions.get(session_id)
        if session is None:
            return False

        def ended() -> None:
            if session_id not in sessions:
                self._forget_storage(session_id)

        session.on_close[self] = ended
        return True

    def _act_as(self, arguments: list[Any]) -> None:
        """Give the current session the rights of another user; without arguments, those of its own again."""
        session = self._box.session.current
        session.credentials = self._box.access.for_session(arguments[0]) if arguments else session.user

    def _open_console(self, arguments: list[Any]) -> int:
        """Open the session of a client of the text port, whose address is given. Returns its number."""
        return self._box.session.open("console", arguments[0], ADMIN).id

    def _close_console(self, arguments: list[Any]) -> None:
        session = self._box.session.sessions.get(arguments[0])
        if session is not None:
            self._box.session.close(session)

    def _run_session_triggers(self, arguments: list[Any]) -> None:
        """Run the triggers of an event except one: the event, that one or None, and their arguments."""
        name, left_out, *rest = arguments
        for trigger in _TRIGGERS[name](self._box.session).functions:
            if trigger != left_out:
                trigger(*rest)

    def _of_session(self, arguments: list[Any]) -> object:
        method, *rest = arguments
        return _set_trigger(getattr(self._box.session, method), rest)


_TRIGGERS: Final[Mapping[str, Callable[[SessionFacade], TriggerList]]] = {
    "on_connect": lambda sessions: sessions.connect_triggers,
    "on_disconnect": lambda sessions: sessions.disconnect_triggers,
    "on_auth": lambda sessions: sessions.authentication_triggers,
}

_SHOWN_OF_FUNCTIONS: Final = (
    "id",
    "name",
    "language",
    "body",
    "returns",
    "param_list",
    "is_deterministic",
    "is_sandboxed",
    "comment",
    "aggregate",
)


def _set_trigger(set_trigger: Function, arguments: list[Any]) -> object:
    """Set, replace or delete a trigger of Lua; the list of them without arguments."""
    new, old = argument(arguments, 0), argument(arguments, 1)
    try:
        result = set_trigger(new, old)
    except ValueError:
        raise BoxError.procedure("trigger reset: Trigger is not found") from None
    return tuple(result) if isinstance(result, list) else result


class _BeforeReplace:
    """A function of Lua as a trigger `before_replace`.

    Parameters:
        function: the function: it returns the tuple to store, or nothing to leave the change as it is.
    """

    def __init__(self, function: Function) -> None:
        self.function = function

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BeforeReplace) and other.function is self.function

    def __hash__(self) -> int:
        return hash(id(self.function))

    def __call__(self, old: Tuple | None, new: Tuple | None, *rest: object) -> object:
        result = self.function(old, new, *rest)
        if result is None:
            return None
        first = result[0] if isinstance(result, tuple) else result
        assert isinstance(first, codec.Raw)
        if old is not None and first.raw == old.raw:
            return old
        value = codec.unpack(first.raw)
        if value is not None and not isinstance(value, list):
            raise BoxError(ErrorCode.BEFORE_REPLACE_RET, lua_type(value))
        return NIL if value is None else value


def _before_replace(space: Space, arguments: list[Any]) -> object:
    wrapped = [None if each is None else _BeforeReplace(each) for each in arguments[:2]]
    result = _set_trigger(space.before_replace, wrapped)
    if isinstance(result, tuple):  # the list of them
        return tuple(each.function for each in result if isinstance(each, _BeforeReplace))
    return result.function if isinstance(result, _BeforeReplace) else None


def _from_map(space: Space, arguments: list[Any]) -> object:
    """The row of a map of fields by name, a tuple or with the option `table` a table; or None and a text."""
    given = argument(arguments, 0)
    options = argument(arguments, 1)
    names = space.core().format.names
    fields: list[Any] = []
    for name, value in dict(given).items():
        number = names.get(name)
        if number is None:
            return None, f"Unknown field '{name}'"
        fields.extend([None] * (number + 1 - len(fields)))
        fields[number] = value
    try:
        space.core().format.check(fields)
    except BoxError as error:
        return None, error.message
    if isinstance(options, dict) and options.get("table"):
        return fields
    return Tuple(codec.pack(fields), space.core().format)


_SPACE_METHODS: Final[Mapping[str, Callable[[Space, list[Any]], object]]] = {
    "on_replace": lambda space, arguments: _set_trigger(space.on_replace, arguments),
    "before_replace": _before_replace,
    "run_triggers": lambda space, arguments: space.run_triggers(bool(arguments[0])),
    "frommap": _from_map,
}

_INDEX_METHODS: Final[Mapping[str, Callable[[Index, list[Any]], object]]] = {
    "bsize": lambda index, arguments: index.tree.bsize(),
}
