"""The queue: its tubes, sessions and settings.

Source: README of github.com/tarantool/queue, "Using the queue module".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from iproto_server import (
    Application,
    Box,
    BoxError,
    ManagedQueue,
    NamedQueues,
    Steps,
    Waiter,
)
from queue_lua_compat.policies.options import QUEUE_OPTIONS
from queue_lua_compat.policies.queue_policy import DEAD_LETTERS
from queue_lua_compat.tubes.arguments import as_text, lua_text, options_of
from queue_lua_compat.tubes.driver import Drivers, TubeDriver
from queue_lua_compat.tubes.running_tubes import INIT, RUNNING, TUBE_PREFIX, RunningTubes
from queue_lua_compat.tubes.settings import checked
from queue_lua_compat.tubes.system import system_spaces
from queue_lua_compat.tubes.system.system_spaces import QUEUE
from queue_lua_compat.tubes.tube.management import ManagedTube
from queue_lua_compat.tubes.tube.tube import Tube
from queue_lua_compat.tubes.tube.tube_state import TaskCallback


class Queue(RunningTubes):
    """All tubes of a box.

    Applications use it in their setups and procedures: `queue.create_tube(…)`,
    `queue.tube["jobs"].put(…)`.
    """

    def __init__(self, application: Application, drivers: Drivers) -> None:
        super().__init__(application, drivers)
        application.metrics(self.counters)
        application.queues(self.managed)

    def cfg(self, options: object = None) -> None:
        """Change settings, also before the start.

        Parameters:
            options: `ttr`: the seconds that a session outlives its last connection; `in_replicaset`.

        Raises:
            BoxError: an option is unknown or has an invalid value.
        """
        settings = checked(options, self._temporary_tubes())
        if self._state == INIT:
            self._given.update(settings)
        else:
            self._box.on_rollback(partial(self._set, dict(self._settings)))
            self._set(settings)
            system_spaces.switch(self._box, in_replicaset=settings["in_replicaset"])
            self._sessions.follow()

    def _temporary_tubes(self) -> list[str]:
        if self._state == INIT:
            return []
        return [row[0] for row in self._box.space[QUEUE].pairs() if row[4].get("temporary")]

    def managed(self, box: Box) -> Iterable[ManagedQueue]:
        """Return the tubes for operators."""
        return NamedQueues(self._names(), self._managed_tube)

    def _managed_tube(self, name: str) -> ManagedTube | None:
        tube = self.tube.get(name)
        return None if tube is None else ManagedTube(tube, self._statistics)

    # -- tubes --

    def create_tube(self, name: Any, kind: Any, options: object = None) -> Tube | None:
        """Create a tube.

        Parameters:
            name: the name of the tube and of its space.
            kind: the type: the name of a driver.
            options: `temporary`, `if_not_exists`, `on_task_change` (a function, or the name of one in
                `callbacks`), those of the driver: `ttl`, `ttr`, `pri`, `capacity`, …, and those of the
                policy: `release_limit`, …

        Returns: the tube, which may exist with `if_not_exists`; None while the queue is not running.

        Raises:
            BoxError: the type or callback is unknown, an option of the policy is wrong, the space exists, or
                the caller may not create one.
        """
        if not self._is_running("create_tube"):
            return None
        given = options_of(options, "opts")
        if given.get("if_not_exists") is None:
            given["if_not_exists"] = False
        wanted = given.pop("on_task_change", None)
        callback = self._callback(wanted)
        if given["if_not_exists"] is True and name in self.tube:
            existing: Tube = self.tube[name]
            if callback is not None:
                self._set_callback(existing, callback, wanted)
            return existing
        if self._settings["in_replicaset"] and given.get("temporary"):
            raise BoxError.procedure("Cannot create temporary tube in replicaset mode")
        driver = self._drivers.of(kind)
        box = self._box
        if name in box.space and given["if_not_exists"] is False:
            raise BoxError.procedure(f"Space '{name}' already exists")
        row = box.space[QUEUE].get([name])
        is_new = row is None and name not in box.space
        self._application.forget_procedures(TUBE_PREFIX)
        if row is not None:
            tube = self._recreate(row)
        else:
            driver.create_space(box, name, given)
            last = box.space[QUEUE].index["tube_id"].max()
            number: int = 0 if last is None else last[1] + 1
            tube = self._add(name, kind, number, driver, given)
            box.space[QUEUE].insert([name, number, name, kind, given])
        if is_new:
            tube.policy.forget()
        tube.policy.check({})
        tube.start()
        tube.policy.prepare()
        self._set_callback(tube, callback, wanted)
        return tube

    def tubes(self, name: object = None) -> list[str] | bool:
        """Return the names of all tubes, or whether a tube exists."""
        if name is None:
            return self._names()
        name = as_text(name)
        if name is False:
            return False
        if not isinstance(name, str):
            raise BoxError.procedure("argument #1 should be string or nil")
        return name in self.tube

    def register_driver(self, name: str, driver: type[TubeDriver]) -> None:
        """Register a type of tubes. Existing tubes of that type start to work.

        Raises:
            BoxError: the name is in use, or the driver is not a `TubeDriver`.
        """
        self._drivers.register(name, driver)
        if self._state == RUNNING:
            for row in self._box.space[QUEUE].select():
                if row[3] == name:
                    self._recreate(row).start()
            self._application.forget_procedures(TUBE_PREFIX)

    def task_callback(self, name: str) -> Callable[[TaskCallback], TaskCallback]:
        """Let clients name the decorated function as the `on_task_change` of the tubes they create."""

        def register(function: TaskCallback) -> TaskCallback:
            self.callbacks[name] = function
            return function

        return register

    def _names(self) -> list[str]:
        if self.tube.start_stored is None:
            return list(self.tube)
        rows = self._box.session.su("admin", self._box.space[QUEUE].select)
        return [row[0] for row in rows if row[3] in self._drivers]

    def _dead_letters_of(self, name: str) -> Tube:
        """Return the tube of a tube's dead letters, which is of the same type; create it unless it exists.

        Raises:
            BoxError: there is a tube or space of its name for another purpose.
        """
        origin = self.tube[name]
        dead_name = name + DEAD_LETTERS
        tube: Tube | None = self.tube.get(dead_name)
        if tube is not None and tube.policy.dead_letters_of == name and tube.kind == origin.kind:
            return tube
        if tube is not None or dead_name in self._box.space:
            raise BoxError.procedure(
                f'"{dead_name}" exists, and has no dead letters of the {origin.kind} tube "{name}"'
            )
        not_kept = {*QUEUE_OPTIONS, "if_not_exists", "on_task_change", "capacity"}
        options = {option: value for option, value in origin.options.items() if option not in not_kept}
        tube = self.create_tube(dead_name, origin.kind, options)
        if tube is None:
            raise BoxError.procedure("the tubes do not run while the server is read-only")
        tube.policy.mark_dead_letters_of(name)
        return tube

    def _set_callback(self, tube: Tube, callback: TaskCallback | None, wanted: object) -> None:
        tube.callback = callback
        if isinstance(wanted, str):
            self._named[tube.name] = wanted
        else:
            self._named.pop(tube.name, None)

    def _callback(self, given: object) -> TaskCallback | None:
        if given is None or callable(given):
            return given
        if isinstance(given, str) and given in self.callbacks:
            return self.callbacks[given]
        raise BoxError.procedure(f"there is no function {lua_text(given)} for on_task_change")

    # -- sessions --

    def identify(self, session_uuid: object = None) -> str:
        """Return the UUID of the caller's session.

        Parameters:
            session_uuid: the session to join; None for the caller's own.

        Raises:
            BoxError: the UUID is invalid, or there is no such session.
        """
        return self._sessions.identify(self._box.session.id(), session_uuid)

    # -- statistics --

    def statistics(self, name: object = None) -> Mapping[str, object] | Waiter:
        """Return a tube's tasks by state and its calls since the start, or those of all tubes by name.

        Those of many tubes are counted in slices.

        Parameters:
            name: the tube's name; None for all.
        """
        if name is not None:
            return self._statistics.of(str(as_text(name)))
        return self._box.in_slices(self._statistics_steps(), for_answer_only=True)

    def _statistics_steps(self) -> Steps[Mapping[str, object]]:
        found: dict[str, object] = {}
        for row in self._box.space[QUEUE].pairs():
            if row[2] in self._box.space:
                found[row[0]] = self._statistics.of(row[2])
            yield
        return found

    def counters(self, box: Box) -> dict[str, int]:
        """Return the number of tasks per tube and state, for Graphite."""
        return {
            f"{name}.{state}": number
            for name in self._names()
            for state, number in self._statistics.tasks(name).items()
        }
