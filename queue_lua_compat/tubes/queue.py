"""The queue: its tubes, sessions and settings.

Source: README of github.com/tarantool/queue, "Using the queue module".
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final

from iproto_server import (
    Application,
    Box,
    BoxError,
    ManagedQueue,
    NamedQueues,
    Steps,
    Tuple,
    Waiter,
    pause_after,
)
from queue_lua_compat.policies.options import QUEUE_OPTIONS
from queue_lua_compat.policies.queue_policy import DEAD_LETTERS, forget_policies
from queue_lua_compat.tubes.arguments import as_text, lua_text, options_of
from queue_lua_compat.tubes.context import TubeContext, Tubes
from queue_lua_compat.tubes.driver import Drivers, TubeDriver
from queue_lua_compat.tubes.settings import checked
from queue_lua_compat.tubes.statistics import Statistics
from queue_lua_compat.tubes.system import system_spaces
from queue_lua_compat.tubes.system.consumers import Consumers
from queue_lua_compat.tubes.system.sessions import Sessions, TaskReleases
from queue_lua_compat.tubes.system.system_spaces import QUEUE
from queue_lua_compat.tubes.tube.management import ManagedTube
from queue_lua_compat.tubes.tube.tube import TaskCallback, Tube

logger = logging.getLogger("queue_lua_compat.tubes")

TUBE_PREFIX: Final = "queue.tube."
"""The prefix of the names of the tubes' procedures."""

_KEPT: Final = "queue_lua_compat.tubes"
_INIT: Final = "INIT"
_RUNNING: Final = "RUNNING"
_WAITING: Final = "WAITING"
_TUTORIALS: Final = frozenset({"queue", "queue_dlq"})
"""The queues of the tutorial, which share the spaces of policies; names of the legacy queue have a slash."""

_TUBES: Final = 15
"""The number of tubes that start or stop in a slice of a reload, some 100 µs each."""


class Queue:
    """All tubes of a box.

    Applications use it in their setups and procedures: `queue.create_tube(…)`,
    `queue.tube["jobs"].put(…)`.

    Parameters:
        application: the application that provides the procedures.
        drivers: the types of tubes.

    Attributes:
        tube: the tubes by name.
        callbacks: functions that clients may name as a tube's `on_task_change`.
    """

    def __init__(self, application: Application, drivers: Drivers) -> None:
        self._application = application
        self._drivers = drivers
        self.tube = Tubes()
        self.callbacks: dict[str, TaskCallback] = {}
        self._given: dict[str, Any] = {}
        self._state = _INIT
        self._is_in_setup = False
        application.setup(self.setup)
        application.on_stop(self.stop)
        application.on_reload(self.replaced)
        application.metrics(self.counters)
        application.queues(self.managed)

    # -- start and stop --

    def setup(self, box: Box) -> None:
        """Start with a box: at once, or when it becomes writable."""
        self._box = box
        self._state = _INIT
        self.tube.clear()
        self.tube.start_stored = None
        self._application.forget_procedures(TUBE_PREFIX)
        kept: dict[str, Any] = box.keep(_KEPT, dict)
        is_reload = bool(kept)
        self._settings: dict[str, Any] = kept.setdefault("settings", {"ttr": 0, "in_replicaset": False})
        self._settings.update(self._given)
        self._named: dict[str, str] = kept.setdefault("named callbacks", {})
        self._statistics = Statistics(box, kept.setdefault("counters", {}))
        self._sessions = Sessions(box, lambda session_uuid: self._releases.release(session_uuid))
        self._releases = TaskReleases(
            box, self.tube, lambda: self.state() == _RUNNING, self._sessions.is_known
        )
        self._sessions.ttr = self._settings["ttr"]
        consumers = Consumers(box, kept.setdefault("consumers", {}))
        self._context = TubeContext(
            box,
            self._statistics,
            self._sessions,
            consumers,
            self._is_running,
            self._forget,
            self.tube,
            self._dead_letters_of,
        )
        box.on_rollback(self._setup_undone)
        box.session.on_disconnect(self._disconnected)
        if is_reload:
            self._resume()
        elif not box.is_read_only:
            self._start()
        box.watch("box.status", self._status_changed)

    def stop(self, box: Box) -> None:
        """Stop at the end: cancel all timers."""
        if self._state == _RUNNING:
            self._stop()

    def replaced(self, box: Box) -> None:
        """Stop when a reload has replaced this code: no new calls come here, and the tubes stop in slices."""
        if self._state == _RUNNING:
            self._end()
            box.in_slices(self._discard_steps(), size=_TUBES)

    def _setup_undone(self) -> None:
        self._state = _INIT
        self.tube.start_stored = None
        for tube in self.tube.values():
            tube.stop()

    def _start(self) -> None:
        """Restore the stored tubes. Taken tasks become ready, unless their session may be resumed."""
        box = self._box
        system_spaces.create_all(box, in_replicaset=self._settings["in_replicaset"])
        for space in (system_spaces.CONSUMERS, system_spaces.SESSION_IDS):
            for row in box.space[space].select():
                box.space[space].delete([row[0], row[1]] if space == system_spaces.CONSUMERS else [row[0]])
        forget_policies(box, self._is_leftover)
        self._start_tubes()
        self._releases.is_starting = True
        try:
            self._sessions.start()
        finally:
            self._releases.is_starting = False

    def _is_leftover(self, name: str) -> bool:
        is_ours = "/" not in name and name not in _TUTORIALS
        return is_ours and self._box.space[QUEUE].get([name]) is None

    def _resume(self) -> None:
        """Continue after a reload: taken tasks, sessions and waiting calls persist.

        Some tubes start with the setup, which fails if they do. The others start in slices once it is in the
        log, or when they are looked up.
        """
        system_spaces.switch(self._box, in_replicaset=self._settings["in_replicaset"])
        self._state = _RUNNING
        self.tube.start_stored = self._start_stored
        self._is_in_setup = True
        steps = self._start_steps()
        for _ in islice(steps, _TUBES):
            pass
        self._sessions.resume()
        self._box.on_commit(partial(self._box.when_written, partial(self._start_others, steps)))

    def _start_others(self, steps: Steps[None]) -> None:
        if self.tube.start_stored is None:
            return
        self._is_in_setup = False
        box = self._box
        rest = box.run(box.session.background, partial(box.in_slices, size=_TUBES), steps)
        if isinstance(rest, Waiter):
            rest.on_done(self._others_started)

    def _others_started(self, rest: Waiter) -> None:
        if rest.error is not None:
            logger.error("cannot start all tubes, trying again", exc_info=rest.error)
            self._box.clock.call_later(pause_after(1), lambda: self._start_others(self._start_steps()))

    def _start_steps(self) -> Steps[None]:
        """Start all tubes, one in each step."""
        last: Tuple | None = None
        has_all = True
        while page := self._box.space[QUEUE].select(limit=_TUBES, after=last):
            if not self._is_in_setup:
                # Tubes stay. As old ones are freed meanwhile, Python would count few new objects, and then
                # look at those of thousands of tubes at once.
                gc.freeze()
            for last in page:
                if self.tube.start_stored is None:
                    return  # the queue has stopped
                name = last[0]
                if last[3] not in self._drivers:
                    logger.warning('queue: [tube "%s"] there is no driver "%s"', name, last[3])
                elif self.tube.running(name) is None:
                    try:
                        self._start_stored(name)
                    except BaseException:
                        if self._is_in_setup:
                            raise
                        has_all = False
                        logger.exception('queue: [tube "%s"] cannot start, trying again with a call', name)
                yield
        if has_all:
            self.tube.start_stored = None

    def _start_stored(self, name: object) -> Tube | None:
        """Start a stored tube that has not been started since the reload; None if there is none."""
        box = self._box
        if box.is_in_txn():
            found: Tube | None = box.session.su("admin", box.atomic, self._start_now, name)
            return found
        return box.run(box.session.background, self._start_now, name)

    def _start_now(self, name: object) -> Tube | None:
        row = self._box.space[QUEUE].get([name]) if isinstance(name, str) else None
        if row is None or row[3] not in self._drivers:
            return None
        tube = self._recreate(row)
        tube.start()
        if tube.waiting:
            # Tasks may have become ready while nothing followed the changes of the space.
            self._box.on_commit(tube.wake_all)
        return tube

    def _start_tubes(self) -> None:
        self._state = _RUNNING
        for row in self._box.space[QUEUE].select():
            if row[3] in self._drivers:
                tube = self.tube.get(row[0])
                (self._recreate(row) if tube is None else tube).start()
            else:
                logger.warning('queue: [tube "%s"] there is no driver "%s"', row[0], row[3])
        self._application.forget_procedures(TUBE_PREFIX)

    def _stop(self) -> None:
        self._end()
        for tube in self.tube.values():
            tube.stop()

    def _end(self) -> None:
        self.tube.start_stored = None
        self._sessions.stop()
        self._state = _WAITING

    def _discard_steps(self) -> Steps[None]:
        while self.tube:
            self.tube.popitem()[1].discard()
            yield

    def _status_changed(self, key: str, status: object) -> None:
        """Start or stop when the instance becomes writable or read-only."""
        if self._box.is_read_only:
            if self._state == _RUNNING:
                self._stop()
        elif self._state != _RUNNING:
            self._start()
            for tube in self.tube.values():
                self._box.on_commit(tube.wake_all)

    # -- state and settings --

    def state(self) -> str:
        """RUNNING; on a read-only instance INIT if it has always been one, otherwise WAITING."""
        return _WAITING if self._state == _RUNNING and self._box.is_read_only else self._state

    def _is_running(self, method: str) -> bool:
        # Every call asks this: attributes cost less than the property `is_read_only`.
        if self._state == _RUNNING and not self._box.transactions.is_read_only:
            return True
        logger.error("%s: queue is in %s state", method, self.state())
        return False

    def cfg(self, options: object = None) -> None:
        """Change settings, also before the start.

        Parameters:
            options: `ttr`: the seconds that a session outlives its last connection; `in_replicaset`.

        Raises:
            BoxError: an option is unknown or has an invalid value.
        """
        settings = checked(options, self._temporary_tubes())
        if self._state == _INIT:
            self._given.update(settings)
        else:
            self._box.on_rollback(partial(self._set, dict(self._settings)))
            self._set(settings)
            system_spaces.switch(self._box, in_replicaset=settings["in_replicaset"])
            self._sessions.follow()

    def _set(self, settings: dict[str, Any]) -> None:
        self._settings.update(settings)
        self._sessions.ttr = self._settings["ttr"]

    def _temporary_tubes(self) -> list[str]:
        if self._state == _INIT:
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
        driver = self._driver(kind)
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
        if self._state == _RUNNING:
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

    def _driver(self, kind: object) -> type[TubeDriver]:
        driver = self._drivers.get(kind) if isinstance(kind, str) else None
        if driver is None:
            raise BoxError.procedure(f"Unknown tube type {lua_text(kind)}")
        return driver

    def _callback(self, given: object) -> TaskCallback | None:
        if given is None or callable(given):
            return given
        if isinstance(given, str) and given in self.callbacks:
            return self.callbacks[given]
        raise BoxError.procedure(f"there is no function {lua_text(given)} for on_task_change")

    def _recreate(self, row: Tuple) -> Tube:
        """Create the tube of a row of `_queue`."""
        name, number, space_name, kind, options = row[:5]
        driver = self._driver(kind)
        if space_name not in self._box.space:
            raise BoxError.procedure(f"Space '{space_name}' doesn't exists")
        return self._add(name, kind, number, driver, options if isinstance(options, dict) else {})

    def _add(
        self, name: str, kind: str, number: int, driver: type[TubeDriver], options: dict[str, Any]
    ) -> Tube:
        before = self.tube.running(name)
        if before is not None:
            before.stop()
        tube = Tube(self._context, name, kind, number, driver, options)
        tube.callback = self.callbacks.get(self._named.get(name, ""))
        self.tube[name] = tube
        self._box.on_rollback(partial(self._reconcile, name, tube.stop))
        return tube

    def _forget(self, name: str) -> None:
        """Remove a tube that is being dropped."""
        self._remove(name)
        self._named.pop(name, None)
        self._box.on_rollback(partial(self._reconcile, name))

    def _remove(self, name: str) -> None:
        self.tube.pop(name, None)
        self._application.forget_procedures(TUBE_PREFIX)

    def _reconcile(self, name: str, stop: Callable[[], object] | None = None) -> None:
        """After a rollback of creating or dropping a tube, restore what `_queue` says."""
        if stop is not None:
            stop()
        self._remove(name)
        if self._state == _RUNNING:
            self._box.clock.call_later(0.0, partial(self._restore_tube, name))

    def _restore_tube(self, name: str) -> None:
        box = self._box
        if self._state == _RUNNING:
            box.run(box.session.background, self._recreate_missing, name)

    def _recreate_missing(self, name: str) -> None:
        if self.tube.running(name) is None:
            self._start_now(name)

    # -- sessions --

    def identify(self, session_uuid: object = None) -> str:
        """Return the UUID of the caller's session.

        Parameters:
            session_uuid: the session to join; None for the caller's own.

        Raises:
            BoxError: the UUID is invalid, or there is no such session.
        """
        return self._sessions.identify(self._box.session.id(), session_uuid)

    def _disconnected(self) -> None:
        connection_id = self._box.session.id()
        # A read-only instance handles this when it becomes writable.
        if self.state() == _RUNNING:
            self._box.on_commit(partial(self._sessions.closed, connection_id))

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
