"""The procedures of the queue and of its tubes, for clients."""

from __future__ import annotations

from types import MethodType
from typing import Any, Final

from iproto_server import Application, Box, BoxError
from queue_lua_compat.tubes.arguments import Procedure, as_procedure, as_text, lua_type, whole
from queue_lua_compat.tubes.queue import Queue
from queue_lua_compat.tubes.running_tubes import TUBE_PREFIX
from queue_lua_compat.tubes.tube.tube import Tube

METHODS: Final = {
    "put": 2,
    "put_many": 1,
    "take": 1,
    "take_many": 2,
    "touch": 3,
    "ack": 1,
    "ack_many": 1,
    "release": 2,
    "release_all": 0,
    "peek": 1,
    "bury": 1,
    "kick": 1,
    "delete": 1,
    "truncate": 0,
    "drop": 0,
    "grant": 2,
    "grant_role": 2,
}
"""The procedures of clients, with the maximum numbers of arguments."""

TAKING_AN_ID: Final = frozenset({"touch", "ack", "release", "peek", "bury", "delete"})
"""Procedures with a task's id as the first argument."""

ANSWERING_NIL: Final = frozenset(
    {"put", "put_many", "ack", "ack_many", "release", "peek", "bury", "kick", "delete", "drop"}
)
"""Procedures that return nil instead of no value."""


IN_SLICES: Final = {
    "drop": "drop_steps",
    "kick": "kick_steps",
    "release_all": "release_all_steps",
    "truncate": "truncate_steps",
}
"""The methods of a tube with the steps of procedures that other requests may interrupt."""


class Procedures:
    """The procedures of a queue.

    Parameters:
        application: the application that provides the procedures.
        queue: the queue.
    """

    def __init__(self, application: Application, queue: Queue) -> None:
        self._queue = queue
        application.procedures_under(TUBE_PREFIX, is_cached=True)(self.find)
        for name, function, most in (
            ("create_tube", self._create_tube, 3),
            ("identify", queue.identify, 1),
            ("state", queue.state, 0),
            ("cfg", queue.cfg, 1),
            ("statistics", queue.statistics, 1),
            ("stats", queue.statistics, 1),
            ("tube", queue.tubes, 1),
        ):
            application.procedure(f"queue.{name}")(as_procedure(function, most))

    def find(self, name: str) -> Procedure | None:
        """Return the procedure for `queue.tube.NAME:METHOD`, or None."""
        path = name.removeprefix(TUBE_PREFIX)
        tubes = self._queue.tube
        if path in tubes:
            return _call_a_table
        tube_name, colon, method = path.rpartition(":")
        if colon and tube_name in tubes and method in METHODS:
            return _method(tubes[tube_name], method)
        tube_name, _, method = path.rpartition(".")
        return _call_without_self if tube_name in tubes and method in METHODS else None

    def _create_tube(self, name: Any = None, kind: Any = None, options: object = None) -> object:
        """Create a tube and return a description: the object that Lua returns cannot be sent."""
        tube = self._queue.create_tube(as_text(name), as_text(kind), options)
        if tube is None:
            return (None,)
        return {"name": tube.name, "type": tube.kind, "tube_id": tube.number, "opts": tube.options}


def _method(tube: Tube, name: str) -> Procedure:
    most, takes_id = METHODS[name], name in TAKING_AN_ID
    nothing = (None,) if name in ANSWERING_NIL else None
    if name in IN_SLICES:
        steps = getattr(tube, IN_SLICES[name])

        def procedure_in_slices(box: Box, *arguments: object) -> object:
            result = box.in_slices(steps(*arguments[:most]))
            return nothing if result is None else result

        return procedure_in_slices
    function = getattr(type(tube), name)
    method = MethodType(getattr(function, "__wrapped__", function), tube)

    # Every call of a client passes through here, so it is one function.
    def procedure(box: Box, *arguments: object) -> object:
        if len(arguments) > most:
            arguments = arguments[:most]
        if takes_id and arguments and isinstance(arguments[0], float):
            arguments = (whole(arguments[0]), *arguments[1:])
        result = method(*arguments)
        return nothing if result is None else result

    if name == "put":
        # Of the driver's method: the tube itself does not look at data.
        procedure.packed_arguments = getattr(type(tube.raw).put, "packed_arguments", ())  # type: ignore[attr-defined]
    return procedure


def _call_a_table(box: Box, *arguments: object) -> object:
    raise BoxError.procedure("attempt to call a table value")


def _call_without_self(box: Box, *arguments: object) -> object:
    """A call of `queue.tube.NAME.put`, without the colon: Lua takes the first argument for the tube."""
    raise _without_self(arguments)


def _without_self(arguments: tuple[object, ...]) -> BoxError:
    if arguments and arguments[0] is None:
        return BoxError.procedure("'void *' has no member named 'raw'")
    given = arguments[0] if arguments else None
    if isinstance(given, (dict, list, str, bytes)):
        return BoxError.procedure("attempt to index field 'raw' (a nil value)")
    return BoxError.procedure(f"attempt to index local 'self' (a {lua_type(given)} value)")
