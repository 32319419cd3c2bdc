"""The tubes of a box, from their start to their end."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, Final

from iproto_server import (
    Application,
    Box,
    BoxError,
    Steps,
    Tuple,
    Waiter,
    pause_after,
)
from queue_lua_compat.policies.stored_policies import forget_policies
from queue_lua_compat.tubes.context import TubeContext, Tubes
from queue_lua_compat.tubes.driver import Drivers, TubeDriver
from queue_lua_compat.tubes.statistics import Statistics
from queue_lua_compat.tubes.system import system_spaces
from queue_lua_compat.tubes.system.consumers import Consumers
from queue_lua_compat.tubes.system.sessions import Sessions, TaskReleases
from queue_lua_compat.tubes.system.system_spaces import QUEUE
from queue_lua_compat.tubes.tube.tube import Tube
from queue_lua_compat.tubes.tube.tube_state import TaskCallback

logger = logging.getLogger("queue_lua_compat.tubes")

TUBE_PREFIX: Final = "queue.tube."
"""The prefix of the names of the tubes' procedures."""

_KEPT: Final = "queue_lua_compat.tubes"
INIT: Final = "INIT"
RUNNING: Final = "RUNNING"
WAITING: Final = "WAITING"

_TUTORIALS: Final = frozenset({"queue", "queue_dlq"})
"""The queues of the tutorial, which share the spaces of policies; names of the legacy queue have a slash."""

_TUBES: Final = 15
"""The number of tubes that start or stop in a slice of a reload, some 100 µs each."""


class RunningTubes:
    """The tubes of a box, from their start to their end.

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
        self._state = INIT
        self._is_in_setup = False
        application.setup(self.setup)
        application.on_stop(self.stop)
        application.on_reload(self.replaced)

    def _dead_letters_of(self, name: str) -> Tube:
        """Return the tube of a tube's dead letters; create it unless it exists."""
        raise NotImplementedError

    # -- start and stop --

    def setup(self, box: Box) -> None:
        """Start with a box: at once, or when it becomes writable."""
        self._box = box
        self._state = INIT
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
            box, self.tube, lambda: self.state() == RUNNING, self._sessions.is_known
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
        if self._state == RUNNING:
            self._stop()

    def replaced(self, box: Box) -> None:
        """Stop when a reload has replaced this code: no new calls come here, and the tubes stop in slices."""
        if self._state == RUNNING:
            self._end()
            box.in_slices(self._discard_steps(), size=_TUBES)

    def _setup_undone(self) -> None:
        self._state = INIT
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
        self._state = RUNNING
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
        self._state = RUNNING
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
        self._state = WAITING

    def _discard_steps(self) -> Steps[None]:
        while self.tube:
            self.tube.popitem()[1].discard()
            yield

    def _status_changed(self, key: str, status: object) -> None:
        """Start or stop when the instance becomes writable or read-only."""
        if self._box.is_read_only:
            if self._state == RUNNING:
                self._stop()
        elif self._state != RUNNING:
            self._start()
            for tube in self.tube.values():
                self._box.on_commit(tube.wake_all)

    # -- state and settings --

    def state(self) -> str:
        """RUNNING; on a read-only instance INIT if it has always been one, otherwise WAITING."""
        return WAITING if self._state == RUNNING and self._box.is_read_only else self._state

    def _is_running(self, method: str) -> bool:
        # Every call asks this: attributes cost less than the property `is_read_only`.
        if self._state == RUNNING and not self._box.transactions.is_read_only:
            return True
        logger.error("%s: queue is in %s state", method, self.state())
        return False

    def _set(self, settings: dict[str, Any]) -> None:
        self._settings.update(settings)
        self._sessions.ttr = self._settings["ttr"]

    def _recreate(self, row: Tuple) -> Tube:
        """Create the tube of a row of `_queue`."""
        name, number, space_name, kind, options = row[:5]
        driver = self._drivers.of(kind)
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
        if self._state == RUNNING:
            self._box.clock.call_later(0.0, partial(self._restore_tube, name))

    def _restore_tube(self, name: str) -> None:
        box = self._box
        if self._state == RUNNING:
            box.run(box.session.background, self._recreate_missing, name)

    def _recreate_missing(self, name: str) -> None:
        if self.tube.running(name) is None:
            self._start_now(name)

    def _disconnected(self) -> None:
        connection_id = self._box.session.id()
        # A read-only instance handles this when it becomes writable.
        if self.state() == RUNNING:
            self._box.on_commit(partial(self._sessions.closed, connection_id))
