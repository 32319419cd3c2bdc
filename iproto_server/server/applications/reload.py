"""Reload: imports the applications' code again; rows, sessions and waiting calls persist.

The new code is imported, and its setups run, while the old code is in force. The setups are one transaction;
its commit exchanges procedures, triggers and counters at once, between two requests. If anything fails before
the transaction is in the log, the old code stays in force.

Source: the tutorial's chapter "Hot code reloading" (`package.reload`).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from iproto_server.app import RELOAD, RELOAD_COUNT, Application, Procedures
from iproto_server.box import Box, Waiter
from iproto_server.box.api.generation import CodeGeneration
from iproto_server.box.clock import Timer
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.importer import ImportAnew
from iproto_server.server.application_errors import procedure_error
from iproto_server.server.applications.background_tasks import BackgroundTasks
from iproto_server.server.applications.served_applications import ServedApplications
from iproto_server.server.connection.server_state import ServerState
from iproto_server.server.deadline import Deadline
from iproto_server.server.requests.call import Calls
from iproto_server.server.service_manager import ServiceManager
from iproto_server.text.exception_text import text_of

logger = logging.getLogger("iproto_server.server")

SIGNAL_PAUSE: Final = 1.0
"""Seconds after a reload in which signals wait, so that many of them make one reload."""
MANY_BLOCKS: Final = 1_000_000
"""The number of Python's blocks of memory from which on old code is not freed after each reload."""
UNCOLLECTED_MAX: Final = 10
"""The number of reloads after which old code, some 1.5 MB per reload, is freed in any case."""
LAST_GRACE = 0.5
"""Seconds for a reload to end after the stop of the server has cancelled it."""


class Reload:
    """Reloads the applications of a server, one reload at a time.

    A reload that waits for its turn answers all requests that come until it begins.

    Parameters:
        state: the server's state.
        served: the applications, which are replaced.
        calls: gets the functions `package.reload` and `package.reload.count`.
        background_tasks: the applications' background tasks.
        read_certificates: reads the certificates again.
        import_anew: imports the applications; None if they cannot be imported again.
        manager: the service manager, which is told about each reload.
        now: returns steady time in seconds, for durations.

    Attributes:
        failure: why the last reload failed; None if it did not.
    """

    def __init__(
        self,
        state: ServerState,
        served: ServedApplications,
        calls: Calls,
        background_tasks: BackgroundTasks,
        read_certificates: Callable[[], object],
        import_anew: ImportAnew | None,
        manager: ServiceManager,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state = state
        self._served = served
        self._background_tasks = background_tasks
        self._read_certificates = read_certificates
        self._box = state.box
        self._import_anew = import_anew
        self._manager = manager
        self._now = now
        self.failure: str | None = None
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[int]] = set()
        self._waiting: asyncio.Task[int] | None = None
        self._signal_timer: Timer | None = None
        self._signals_wait_until = 0.0
        self._uncollected = 0
        calls.own.update({RELOAD: self._called, RELOAD_COUNT: self._count})

    # -- requests for a reload --

    def on_signal(self) -> None:
        """Start a reload because of SIGHUP; its result is logged."""
        if self._signal_timer is None:
            pause = max(0.0, self._signals_wait_until - self._now())
            self._signal_timer = self._box.clock.call_later(pause, self._begin_by_signal)

    def _begin_by_signal(self) -> None:
        self._signal_timer = None
        logger.info("reloading on %s", signal.SIGHUP.name)
        self._begin(_retrieve_exception)

    def _called(self, arguments: list[Any]) -> Waiter:
        """Start a reload because of a CALL, whose result is the new generation's number."""
        if self._box.transactions.interactive is not None:
            raise BoxError(ErrorCode.UNSUPPORTED, "An interactive transaction", "calls that wait")
        waiter = Waiter(self._box.session.current, None)
        self._begin(partial(_answer, waiter))
        return waiter

    def _count(self, arguments: list[Any]) -> int:
        return self._box.generation

    def _begin(self, done: Callable[[asyncio.Task[int]], object]) -> None:
        task = self._waiting
        if task is None:
            # The loop's task factory would run it in the caller's transaction.
            task = self._waiting = asyncio.Task(self.reload(), loop=asyncio.get_running_loop())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        task.add_done_callback(done)

    async def finish(self, deadline: Deadline) -> None:
        """Wait for the requested reloads, and cancel them at the deadline."""
        if self._signal_timer is not None:
            self._signal_timer.cancel()
        await deadline.wait(self._tasks)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LAST_GRACE)

    # -- the reload --

    async def reload(self) -> int:
        """Import the applications again and put them in force, after a running reload.

        Returns: the number of the new generation.

        Raises:
            BoxError: PROC_LUA, the reload failed, and the old generation stays in force.
        """
        async with self._turn:
            if asyncio.current_task() is self._waiting:
                self._waiting = None
            begun = self._now()
            self._manager.reloading()
            # Certificates are independent of the applications, so they are read even if the reload fails.
            self._read_certificates()
            try:
                self._check_running()
                if self._import_anew is None:
                    raise BoxError.procedure("the server has not imported its applications itself")
                async with self._import_anew() as applications:
                    self._check_running()
                    await self._take_over(applications)
            except asyncio.CancelledError:
                raise  # the process is ending
            except BaseException as error:
                # An application's code may raise anything; the old code stays in force.
                reason = (
                    error.message if isinstance(error, BoxError) else text_of(error) or type(error).__name__
                )
                failure = f"the reload failed, generation {self._box.generation} stays in force: {reason}"
                logger.error("%s", failure)
                logger.debug("the reload failed", exc_info=error)
                self.failure = failure
                self._manager.reloaded()
                raise BoxError.procedure(failure) from error
            finally:
                self._signals_wait_until = self._now() + SIGNAL_PAUSE
                asyncio.get_running_loop().call_soon(self._collect)
            seconds = self._now() - begun
            logger.info("reloaded in %.1f ms, this is generation %d", seconds * 1000, self._box.generation)
            self.failure = None
            self._manager.reloaded()
            return self._box.generation

    def _collect(self) -> None:
        """Free the old code, which has reference cycles; exempt the other objects from later collections.

        A collection looks at all objects in one piece. If there are many, it waits until several generations
        can be freed.
        """
        self._uncollected += 1
        if self._uncollected == UNCOLLECTED_MAX or sys.getallocatedblocks() <= MANY_BLOCKS:
            self._uncollected = 0
            gc.unfreeze()
            gc.collect()
        gc.freeze()

    def _check_running(self) -> None:
        if self._state.is_stopping:
            raise BoxError.procedure("the server is stopping")

    async def _take_over(self, applications: Sequence[Application]) -> None:
        box, batch = self._box, self._state.batch
        exchange = _Exchange(box, self._served, applications)
        try:
            exchange.set_up()
            # The setups are in the log, or rolled back with everything else.
            written = batch.written()
            batch.flush()
            await written
        except BaseException:
            exchange.revert()
            raise
        for application in exchange.before:
            for function in application.reloads:
                try:
                    box.run(box.session.background, function, box)
                except BaseException:
                    # The new code is already in force.
                    logger.exception("an on_reload function of %s failed", application.name)
        await self._background_tasks.replace(applications)


class _Exchange:
    """The exchange of one generation of applications for another.

    Parameters:
        box: the database.
        served: the applications that are replaced.
        applications: the new ones.

    Attributes:
        before: the replaced applications.

    Raises:
        ApplicationConflict: two of them define one name.
    """

    def __init__(self, box: Box, served: ServedApplications, applications: Sequence[Application]) -> None:
        self.before = served.current
        self._served = served
        self._box = box
        self._applications = list(applications)
        self._procedures = (served.procedures, Procedures(applications))
        self._generation: CodeGeneration | None = None
        self._is_complete = False

    def set_up(self) -> None:
        """Run the setups in one transaction, whose commit puts the new applications in force.

        Raises:
            BoxError: a setup failed; nothing has changed.
        """
        transactions = self._box.transactions
        is_read_only = transactions.is_read_only
        # As at the start, setups may change data in read-only mode.
        transactions.is_read_only = False
        try:
            self._box.run(self._box.session.background, self._run_setups)
        finally:
            transactions.is_read_only = is_read_only
        if not self._is_complete:
            raise BoxError.procedure("a setup has rolled back the transaction of all setups")

    def _run_setups(self) -> None:
        # Registered before the functions of the setups.
        self._box.on_commit(self._complete)
        self._box.on_rollback(self.revert)
        self._generation = CodeGeneration(self._box)
        try:
            for application in self._applications:
                for setup in application.setups:
                    _run_setup(self._box, application.name, setup)
        except BaseException:
            # Before the rollback of rows, which has to run the old triggers.
            self.revert()
            raise

    def _complete(self) -> None:
        assert self._generation is not None
        self._generation.complete()
        self._served.replace(self._applications, self._procedures[1])
        self._is_complete = True

    def revert(self) -> None:
        """Put the old applications back in force; a second call does nothing."""
        if self._generation is not None:
            self._generation.revert()
            self._generation = None
            self._served.replace(self.before, self._procedures[0])
            self._is_complete = False


def _run_setup(box: Box, name: str, setup: Callable[[Box], None]) -> None:
    try:
        setup(box)
    except BaseException as error:
        failure = error if isinstance(error, BoxError) else procedure_error(f"the setup of {name}", error)
        raise BoxError.procedure(f"the setup of {name} failed: {failure.message}") from error


def _retrieve_exception(task: asyncio.Task[int]) -> None:
    """Retrieve the exception, because Python warns of those that are never retrieved."""
    if not task.cancelled():
        task.exception()


def _answer(waiter: Waiter, task: asyncio.Task[int]) -> None:
    if task.cancelled():
        waiter.finish(error=BoxError.procedure("the reload was cancelled: the server is stopping"))
        return
    error = task.exception()
    if error is None:
        waiter.finish(task.result())
    else:
        waiter.finish(error=error)
