"""The queue: its tubes, its sessions, its settings.

Source: README of github.com/tarantool/queue, "Using the queue module".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from iproto_server import Application, Box, BoxError, Tuple
from queue_lua_compat.numbers import shown
from queue_lua_compat.tubes import system_spaces
from queue_lua_compat.tubes.arguments import Procedure, as_procedure, is_lua_number, options_of, whole
from queue_lua_compat.tubes.consumers import Consumers
from queue_lua_compat.tubes.driver import Drivers, TubeDriver
from queue_lua_compat.tubes.sessions import Sessions
from queue_lua_compat.tubes.statistics import Statistics
from queue_lua_compat.tubes.system_spaces import QUEUE, TAKEN
from queue_lua_compat.tubes.tube import (
    ANSWERING_NIL,
    METHODS,
    TAKING_AN_ID,
    Common,
    TaskCallback,
    Tube,
    without_self,
)

logger = logging.getLogger("queue_lua_compat.tubes")

_PREFIX: Final = "queue.tube."
_INIT: Final = "INIT"
_RUNNING: Final = "RUNNING"
_WAITING: Final = "WAITING"


class Queue:
    """All tubes of a box.

    Applications use it from Python: `queue.create_tube(…)`, `queue.tube["jobs"].put(…)`, within their
    setups and procedures.

    Parameters:
        application: the application whose procedures it becomes.
        drivers: the types of tubes.

    Attributes:
        tube: the tubes by name.
        callbacks: what clients may name as a tube's `on_task_change`.
        in_replicaset: whether sessions and who has what are stored, for another instance to take over.
    """

    def __init__(self, application: Application, drivers: Drivers) -> None:
        self._drivers = drivers
        self.tube: dict[str, Tube] = {}
        self.callbacks: dict[str, TaskCallback] = {}
        self.in_replicaset = False
        self._ttr: float = 0
        self._state = _INIT
        application.setup(self.setup)
        application.on_stop(self.stop)
        application.metrics(self.counters)
        application.procedures_under(_PREFIX)(self.find)
        for name, function, most in (
            ("create_tube", self._create_tube_described, 3),
            ("identify", self.identify, 1),
            ("state", self.state, 0),
            ("cfg", self.cfg, 1),
            ("statistics", self.statistics, 1),
            ("stats", self.statistics, 1),
            ("tube", self.tubes, 1),
        ):
            application.procedure(f"queue.{name}")(as_procedure(function, most))

    # -- start and stop --

    def setup(self, box: Box) -> None:
        """Begin with a box: at once, or as soon as it may be written to."""
        self._box = box
        self._state = _INIT
        self.tube.clear()
        self._statistics = Statistics(box)
        self._sessions = Sessions(box, self._release_session)
        self._sessions.ttr = self._ttr
        self._common = Common(
            box, self._statistics, self._sessions, Consumers(box), self._is_running, self._forget
        )
        box.session.on_disconnect(self._disconnected)
        if not box.is_read_only:
            self._start()
        box.watch("box.status", self._status_changed)

    def stop(self, box: Box) -> None:
        """End with it: no timer calls any more."""
        if self._state == _RUNNING:
            self._stop()

    def _start(self) -> None:
        """Take over what is stored. What was taken is ready again, unless its session may come back."""
        box = self._box
        system_spaces.create_all(box, in_replicaset=self.in_replicaset)
        for space in (system_spaces.CONSUMERS, system_spaces.SESSION_IDS):
            for row in box.space[space].select():
                box.space[space].delete([row[0], row[1]] if space == system_spaces.CONSUMERS else [row[0]])
        self._state = _RUNNING
        for row in box.space[QUEUE].select():
            if row[3] in self._drivers:
                tube = self.tube.get(row[0])
                (self._recreate(row) if tube is None else tube).start()
            else:
                logger.warning('queue: [tube "%s"] there is no driver "%s"', row[0], row[3])
        self._sessions.start()

    def _stop(self) -> None:
        for tube in self.tube.values():
            tube.stop()
        self._sessions.stop()
        self._state = _WAITING

    def _status_changed(self, key: str, status: object) -> None:
        """The instance has become read-only, or is so no more."""
        if self._box.is_read_only:
            if self._state == _RUNNING:
                self._stop()
        elif self._state != _RUNNING:
            self._start()
            for tube in self.tube.values():
                self._box.on_commit(tube.wake_all)

    # -- about the queue --

    def state(self) -> str:
        """RUNNING, or INIT or WAITING on an instance that has been read-only from the start, or since."""
        return _WAITING if self._state == _RUNNING and self._box.is_read_only else self._state

    def _is_running(self, method: str) -> bool:
        if self.state() == _RUNNING:
            return True
        logger.error("%s: queue is in %s state", method, self.state())
        return False

    def cfg(self, options: object = None) -> None:
        """Change settings; before the start, too.

        Parameters:
            options: `ttr`, seconds that a session outlives its last connection; `in_replicaset`.

        Raises:
            BoxError: there is no such setting, or it has no such value.
        """
        given = options_of(options, "opts")
        in_replicaset = given.get("in_replicaset")
        if in_replicaset is None:
            in_replicaset = False
        if in_replicaset is True and (temporary := self._temporary_tubes()):
            logger.error(
                "Queue: cannot set `in_replicaset = true`: temporary tube(s) exists: %s", ", ".join(temporary)
            )
            in_replicaset = False
        for name, value in given.items():
            if name == "in_replicaset":
                if not isinstance(value, bool) and value is not None:
                    raise BoxError.procedure(f"Invalid value of in_replicaset: {_text(value)}")
            elif name == "ttr":
                if value is not None and not (is_lua_number(value) and value >= 0):
                    raise BoxError.procedure(f"Invalid value of ttr: {_text(value)}")
            else:
                raise BoxError.procedure(f"Unknown option {_text(name)}")
        ttr = given.get("ttr")
        self._set(self._ttr if ttr is None else ttr, in_replicaset)

    def _set(self, ttr: float, in_replicaset: bool) -> None:
        before = self._ttr, self.in_replicaset
        self._ttr, self.in_replicaset = ttr, in_replicaset
        if self._state == _INIT:
            return
        self._sessions.ttr = ttr
        system_spaces.switch(self._box, in_replicaset=in_replicaset)
        self._sessions.follow()

        def put_back() -> None:
            self._ttr, self.in_replicaset = before
            self._sessions.ttr = before[0]

        self._box.on_rollback(put_back)

    def _temporary_tubes(self) -> list[str]:
        if self._state == _INIT:
            return []
        return [row[0] for row in self._box.space[QUEUE].pairs() if row[4].get("temporary")]

    # -- tubes --

    def create_tube(self, name: str, kind: str, options: object = None) -> Tube | None:
        """Make a tube.

        Parameters:
            name: its name, and that of its space.
            kind: the type: the name of a driver.
            options: `temporary`, `if_not_exists`, `on_task_change` (a function, or the name of one in
                `callbacks`), and what the driver has: `ttl`, `ttr`, `pri`, `capacity`, …

        Returns: the tube, an old one with `if_not_exists`; None while the queue is not running.

        Raises:
            BoxError: there is no such type or callback, there is a space of that name, or the caller may
                not make one.
        """
        if not self._is_running("create_tube"):
            return None
        given = options_of(options, "opts")
        if given.get("if_not_exists") is None:
            given["if_not_exists"] = False
        if given["if_not_exists"] is True and name in self.tube:
            return self.tube[name]
        if self.in_replicaset and given.get("temporary"):
            raise BoxError.procedure("Cannot create temporary tube in replicaset mode")
        driver = self._driver(kind)
        box = self._box
        callback = self._callback(given.pop("on_task_change", None))
        if name in box.space and given["if_not_exists"] is False:
            raise BoxError.procedure(f"Space '{name}' already exists")
        row = box.space[QUEUE].get([name])
        if row is not None:
            tube = self._recreate(row)
        else:
            driver.create_space(box, name, given)
            last = box.space[QUEUE].index["tube_id"].max()
            tube = self._add(name, kind, 0 if last is None else last[1] + 1, driver, given)
            box.space[QUEUE].insert([name, tube.number, name, kind, given])
        tube.start()
        tube.callback = callback
        return tube

    def tubes(self, name: object = None) -> list[str] | bool:
        """The names of all tubes, or whether there is one of that name."""
        if name is None:
            return list(self.tube)
        if not isinstance(name, str):
            raise BoxError.procedure("argument #1 should be string or nil")
        return name in self.tube

    def register_driver(self, name: str, driver: type[TubeDriver]) -> None:
        """Add a type of tubes. Tubes of that type that were there before work from now on.

        Raises:
            BoxError: there is a type of that name, or the driver is none.
        """
        self._drivers.register(name, driver)
        if self._state == _RUNNING:
            for row in self._box.space[QUEUE].select():
                if row[3] == name:
                    self._recreate(row).start()

    def task_callback(self, name: str) -> Callable[[TaskCallback], TaskCallback]:
        """Let clients name the decorated function as the `on_task_change` of the tubes they create."""

        def register(function: TaskCallback) -> TaskCallback:
            self.callbacks[name] = function
            return function

        return register

    def _driver(self, kind: object) -> type[TubeDriver]:
        driver = self._drivers.get(kind) if isinstance(kind, str) else None
        if driver is None:
            raise BoxError.procedure(f"Unknown tube type {_text(kind)}")
        return driver

    def _callback(self, given: object) -> TaskCallback | None:
        if given is None or callable(given):
            return given
        if isinstance(given, str) and given in self.callbacks:
            return self.callbacks[given]
        raise BoxError.procedure(f"there is no function {_text(given)} for on_task_change")

    def _recreate(self, row: Tuple) -> Tube:
        """The tube of a row of `_queue`."""
        name, number, space_name, kind, options = row[:5]
        driver = self._driver(kind)
        if space_name not in self._box.space:
            raise BoxError.procedure(f"Space '{space_name}' doesn't exists")
        return self._add(name, kind, number, driver, options if isinstance(options, dict) else {})

    def _add(
        self, name: str, kind: str, number: int, driver: type[TubeDriver], options: dict[str, Any]
    ) -> Tube:
        before = self.tube.get(name)
        if before is not None:
            before.stop()
        tube = Tube(self._common, name, kind, number, driver, options)
        self.tube[name] = tube
        self._box.on_rollback(partial(self._put_right, name, tube.stop))
        return tube

    def _forget(self, tube: Tube) -> None:
        """A tube is dropped."""
        self.tube.pop(tube.name, None)
        self._box.on_rollback(partial(self._put_right, tube.name))

    def _put_right(self, name: str, stop: Callable[[], object] | None = None) -> None:
        """That a tube came or went has been undone: have it again as `_queue` says."""
        if stop is not None:
            stop()
        self.tube.pop(name, None)
        if self._state == _RUNNING and QUEUE in self._box.space:
            self._box.clock.call_later(0.0, partial(self._have_again, name))

    def _have_again(self, name: str) -> None:
        box = self._box
        box.run(box.session.background, self._recreate_missing, name)

    def _recreate_missing(self, name: str) -> None:
        row = self._box.space[QUEUE].get([name])
        if row is not None and name not in self.tube and row[3] in self._drivers:
            self._recreate(row).start()

    # -- sessions --

    def identify(self, session_uuid: object = None) -> str:
        """The UUID of the caller's session.

        Parameters:
            session_uuid: the session that the caller's connection is to belong to; None for its own.

        Raises:
            BoxError: the UUID is none, or there is no such session.
        """
        return self._sessions.identify(self._box.session.id(), session_uuid)

    def _disconnected(self) -> None:
        connection_id = self._box.session.id()
        # On a read-only instance that is dealt with when it is so no more.
        if self.state() == _RUNNING:
            self._box.on_commit(partial(self._sessions.closed, connection_id))

    def _release_session(self, session_uuid: str) -> None:
        """Make the tasks ready that a session had taken."""
        box = self._box
        for taken in box.space[TAKEN].index["uuid"].select([session_uuid]):
            row = box.space[QUEUE].index["tube_id"].get([taken[0]])
            tube = None if row is None else self.tube.get(row[0])
            if tube is None:
                logger.error("Inconsistent queue state: tube %d not found", taken[0])
                box.space[TAKEN].delete([taken[0], taken[1]])
            else:
                logger.warning("a session is closed, releasing task %s (%s)", taken[1], tube.name)
                tube.give_back(taken[1])

    # -- statistics --

    def statistics(self, name: object = None) -> Mapping[str, object]:
        """The tasks of a tube by state and the calls since the start; those of all tubes by name.

        Parameters:
            name: the tube's name; None for all.
        """
        if name is not None:
            return self._statistics.of(str(name))
        return {row[0]: self._statistics.of(row[2]) for row in self._box.space[QUEUE].pairs()}

    def counters(self, box: Box) -> dict[str, int]:
        """How many tasks there are in every tube and state, for Graphite."""
        return {
            f"{name}.{state}": number
            for name in self.tube
            for state, number in self._statistics.tasks(name).items()
        }

    # -- procedures --

    def find(self, name: str) -> Procedure | None:
        """The procedure that clients call `queue.tube.NAME:METHOD`, or None."""
        path = name.removeprefix(_PREFIX)
        if path in self.tube:
            return _call_a_table
        tube_name, colon, method = path.rpartition(":")
        tube = self.tube.get(tube_name)
        if tube is not None and colon and method in METHODS:
            return self._method(tube, method)
        tube_name, _, method = path.rpartition(".")
        return _call_without_self if tube_name in self.tube and method in METHODS else None

    def _method(self, tube: Tube, name: str) -> Procedure:
        method = getattr(tube, name)

        def answer(*arguments: object) -> object:
            if name in TAKING_AN_ID and arguments:
                arguments = (whole(arguments[0]), *arguments[1:])
            result = method(*arguments)
            return (None,) if result is None and name in ANSWERING_NIL else result

        return as_procedure(answer, METHODS[name])

    def _create_tube_described(self, name: Any = None, kind: Any = None, options: object = None) -> object:
        """What a client is answered that creates a tube. Lua's answer could not be sent."""
        tube = self.create_tube(name, kind, options)
        if tube is None:
            return (None,)
        return {"name": tube.name, "type": tube.kind, "tube_id": tube.number, "opts": tube.options}


def _call_a_table(box: Box, *arguments: object) -> object:
    raise BoxError.procedure("attempt to call a table value")


def _call_without_self(box: Box, *arguments: object) -> object:
    raise without_self(arguments)


def _text(value: object) -> str:
    """A value as Lua's `tostring` writes it."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return str(value).lower()
    return shown(value) if isinstance(value, int | float) else str(value)
