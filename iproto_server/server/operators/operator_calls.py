"""The procedures `operator.…`: what operators see, and repairs.

As any call they need the privilege EXECUTE. Reading also needs READ on the universe, a repair WRITE as well,
and a backup all that the role `super` has for data and its definitions, unless EXECUTE is granted on the
function of that name. They work as the server itself. A call is a transaction: it takes effect for all of its
tasks or for none. Only repairs of more than `REPAIRS` tasks, and `kick`, work in slices, each a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from inspect import signature
from typing import Any, Final

from iproto_server.box import Box, Waiter
from iproto_server.box.access.access_control import ADMIN, Credentials, Privilege, denied
from iproto_server.box.access.session import ActingAs
from iproto_server.box.api.slices import Steps
from iproto_server.errors import BoxError
from iproto_server.managed_queue import ManagedQueue, TaskInfo
from iproto_server.server.applications.application_queues import ApplicationQueues
from iproto_server.server.backup_reader import BackupReader
from iproto_server.server.operator_log import log_action
from iproto_server.server.operators.operator_arguments import (
    PAGE_MAX,
    id_of,
    is_duration,
    limit_of,
    options_of,
    state_of,
)
from iproto_server.server.operators.operator_view import (
    OperatorView,
    Record,
    describe_queue,
    describe_task,
    walk,
)
from iproto_server.server.schedules.schedule_calls import ScheduleCalls
from iproto_server.text.payload_size import cut_payload

PREFIX: Final = "operator."

KICK_MAX: Final = 10_000
"""The maximum number of tasks that one call kicks."""
REPAIRS: Final = 40
"""The maximum number of repairs in a slice, a transaction: all of its tasks are repaired, or none."""
READS: Final = 20
"""The maximum number of queues, tasks or sessions that are read in a slice, some 20 to 100 µs each."""
_PAGE: Final = 100
_LOGGED_MAX: Final = 20
"""The maximum number of ids in a line of the log."""

_READ: Final = Privilege.READ | Privilege.USAGE
_WRITE: Final = Privilege.READ | Privilege.WRITE | Privilege.USAGE
# A backup has hashes of passwords.
_ALL: Final = _WRITE | Privilege.EXECUTE | Privilege.CREATE | Privilege.DROP

Arguments = list[Any]


class OperatorCalls:
    """The procedures for operators.

    Parameters:
        box: the database.
        view: describes the server.
        queues: the queues.
        backups: reads the files of backups.
        schedules: the procedures for schedules.

    Attributes:
        functions: the procedures by name. Each gets the arguments of the call, and runs within a transaction
            as `box.session.current`, whose rights it checks.
    """

    def __init__(
        self,
        box: Box,
        view: OperatorView,
        queues: ApplicationQueues,
        backups: BackupReader,
        schedules: ScheduleCalls,
    ) -> None:
        self._box = box
        self._backups = backups
        self._view = view
        self._queues = queues
        self.functions: dict[str, Callable[[Arguments], Any]] = {}
        self._needed: dict[str, Privilege] = {}
        for function, needed in (
            *((self.status, _READ), (self.queues, _READ), (self.queue, _READ), (self.sessions, _READ)),
            *((self.tasks, _READ), (self.task, _READ)),
            *((self.put, _WRITE), (self.release, _WRITE), (self.bury, _WRITE), (self.delete, _WRITE)),
            *((self.kick, _WRITE), (self.move, _WRITE), (self.requeue, _WRITE), (self.snapshot, _WRITE)),
            *((self.pause, _WRITE), (self.drain, _WRITE), (self.resume, _WRITE), (self.configure, _WRITE)),
            *((self.backup_start, _ALL), (self.backup_read, _ALL), (self.backup_stop, _ALL)),
            *((schedules.schedules, _READ), (schedules.schedule, _WRITE), (schedules.unschedule, _WRITE)),
        ):
            name = f"{PREFIX}{function.__name__}"
            self.functions[name] = partial(self._call, name, function)
            self._needed[name] = needed

    def allowed(self, user: Credentials) -> list[str]:
        """Return the names, without their prefix, of the procedures for which a user has the rights."""
        return [name.removeprefix(PREFIX) for name in self.functions if not self._missing(user, name)]

    def _call(self, name: str, function: Callable[..., Any], arguments: Arguments) -> object:
        self._check_rights(name)
        with ActingAs(self._box.session.current, self._box.access.by_id(ADMIN)):
            try:
                signature(function).bind(*arguments)
            except TypeError as error:
                raise BoxError.procedure(f"{name}: {error}") from None
            return function(*arguments)

    def _check_rights(self, name: str) -> None:
        user = self._box.session.current.credentials
        missing = self._missing(user, name)
        if missing:
            raise denied(missing, "universe", "", user.name)

    def _missing(self, user: Credentials, name: str) -> int:
        """Return the privileges that a user lacks for a procedure, as bits."""
        missing = self._needed[name] & ~user.universe
        if not missing:
            return 0
        function = self._box.catalog.users.functions.get(name)
        if function is not None and user.objects.get(("function", function.id), 0) & Privilege.EXECUTE:
            return 0
        return missing

    # -- reading --

    def status(self) -> Record:
        """Return the state of the server; see `OperatorView.status`."""
        return self._view.status()

    def queues(self, options: object = None) -> list[Record] | Waiter:
        """Return the queues in the order of their names.

        Parameters:
            options: `limit`, `after` (a name).
        """
        given = options_of(options, "limit", "after")
        after = given.get("after")
        if after is not None and not isinstance(after, str):
            raise BoxError.procedure("after must be the name of a queue")
        return self._in_slices(self._view.queues(limit_of(given, PAGE_MAX), after))

    def queue(self, name: object = None) -> Record:
        """Return the figures of a queue.

        Parameters:
            name: its name.
        """
        return describe_queue(self._queue(name))

    def sessions(self, options: object = None) -> list[Record] | Waiter:
        """Return the sessions with the tasks that they have taken.

        Parameters:
            options: `limit`: the maximum number of tasks shown for each session.
        """
        return self._in_slices(self._view.sessions(limit_of(options_of(options, "limit"), _PAGE)))

    def tasks(self, queue: object = None, options: object = None) -> list[Record] | Waiter:
        """Return tasks of a queue; see `ManagedQueue.tasks`.

        Parameters:
            queue: its name.
            options: `state`, `limit`, `after` (an id), `older` (seconds), `data_size` (characters, bytes or
                items of a payload that are kept; see `cut_payload`).
        """
        given = options_of(options, "state", "limit", "after", "older", "data_size")
        data_size = given.get("data_size")
        if data_size is not None and (type(data_size) is not int or not 1 <= data_size < 2**31):
            raise BoxError.procedure("data_size must be an integer from 1")
        state, after, older = (given.get(name) for name in ("state", "after", "older"))
        if older is not None and not is_duration(older):
            raise BoxError.procedure(f"older must be a number of seconds from 0, not {older!r}")
        limit = limit_of(given, _PAGE)
        tasks = walk(
            self._queue(queue),
            None if state is None else state_of(state),
            limit,
            None if after is None else id_of(after),
            None if older is None else float(older),
        )
        return self._in_slices(_page(tasks, limit, data_size))

    def task(self, queue: object = None, task_id: object = None) -> Record | None:
        """Return a task of a queue, or None.

        Parameters:
            queue: the queue's name.
            task_id: the task's id.
        """
        task = self._queue(queue).task(id_of(task_id))
        return None if task is None else describe_task(task)

    # -- repairs --

    def put(self, queue: object = None, data: object = None, options: object = None) -> Record:
        """Put a task, and return it.

        Parameters:
            queue: the queue's name.
            data: the payload.
            options: those of the queue.
        """
        found = self._with_action(queue, "put")
        if options is not None and not isinstance(options, Mapping):
            raise BoxError.procedure("options must be a map")
        task = found.put(data, {} if options is None else options)
        self._log("put", found, [task.id])
        return describe_task(task)

    def release(self, queue: object = None, ids: object = None) -> list[Record] | Waiter:
        """Make tasks ready that are taken, delayed or buried, and return them.

        Parameters:
            queue: the queue's name.
            ids: a list of ids, or one.
        """
        return self._repair("release", queue, ids, lambda found, task_id: found.release(task_id))

    def bury(self, queue: object = None, ids: object = None) -> list[Record] | Waiter:
        """Bury tasks, and return them; as `release`."""
        return self._repair("bury", queue, ids, lambda found, task_id: found.bury(task_id))

    def delete(self, queue: object = None, ids: object = None) -> list[Record] | Waiter:
        """Delete tasks, and return them as they were; as `release`."""
        return self._repair("delete", queue, ids, lambda found, task_id: found.delete(task_id))

    def kick(self, queue: object = None, count: object = 1) -> int | Waiter:
        """Make buried tasks ready, the first ones first, and return their number.

        It works in slices, each of which is a transaction of its own.

        Parameters:
            queue: the queue's name.
            count: the maximum number.
        """
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= KICK_MAX:
            raise BoxError.procedure(f"the number of tasks must be 1 to {KICK_MAX}")
        found = self._with_action(queue, "kick")
        return self._box.in_slices(self._kick(found, count))

    def _kick(self, queue: ManagedQueue, count: int) -> Steps[int]:
        kicked = 0
        while kicked < count and queue.kick(1):
            kicked += 1
            yield
        self._log("kick", queue, [], count=kicked)
        return kicked

    def move(self, queue: object = None, ids: object = None, target: object = None) -> list[Record] | Waiter:
        """Move tasks to another queue, and return the new ones.

        Parameters:
            queue: the name of the queue that they are in.
            ids: a list of ids, or one.
            target: the name of the other queue.
        """
        into = self._queue(target, "target")
        return self._repair("move", queue, ids, lambda found, task_id: found.move(task_id, into), into.name)

    def requeue(self, queue: object = None, ids: object = None) -> list[Record] | Waiter:
        """Put dead letters back into their queue, and return them; as `release`."""
        return self._repair("requeue", queue, ids, lambda found, task_id: found.requeue(task_id))

    def pause(self, queue: object = None) -> Record:
        """Stop handing out tasks until the queue is resumed; consumers keep waiting. Return the queue.

        Parameters:
            queue: its name.
        """
        return self._change("pause", queue, lambda found: found.pause())

    def drain(self, queue: object = None) -> Record:
        """Refuse new tasks while consumers empty the queue, until it is resumed; as `pause`."""
        return self._change("drain", queue, lambda found: found.drain())

    def resume(self, queue: object = None) -> Record:
        """End a queue's pause, or draining, and return the queue; as `pause`."""
        return self._change("resume", queue, lambda found: found.resume())

    def configure(self, queue: object = None, options: object = None) -> Record:
        """Change options of a queue's policy, and return the queue.

        Parameters:
            queue: its name.
            options: the new values by name; nil restores an option.
        """
        if not isinstance(options, Mapping) or not options:
            raise BoxError.procedure("options must be a map")
        return self._change("configure", queue, lambda found: found.configure(options), **options)

    def snapshot(self) -> Waiter:
        """Take a snapshot; the answer comes when it is on disk."""
        waiter = self._box.snapshot()
        self._log("snapshot", None, [])
        return waiter

    # -- backups --

    def backup_start(self, options: object = None) -> Waiter:
        """Open the files of a backup; see `BackupReader.start`. The backup ends with the connection.

        Parameters:
            options: `since`: the clock where an earlier backup ends.
        """
        return self._backups.start(self._box.session.current, options_of(options, "since").get("since"))

    def backup_read(self, name: object = None, offset: object = None, size: object = None) -> Waiter:
        """Read a part of a file of the backup; see `BackupReader.read`.

        Parameters:
            name: the file, as `backup_start` has named it.
            offset: where the part begins, in bytes.
            size: its bytes.
        """
        return self._backups.read(self._box.session.current, name, offset, size)

    def backup_stop(self) -> None:
        """End the backup of the connection, if there is one."""
        self._backups.stop(self._box.session.current)

    # -- internal --

    def _in_slices(self, steps: Steps[list[Record]]) -> list[Record] | Waiter:
        return self._box.in_slices(steps, size=READS, for_answer_only=True)

    def _repair(
        self,
        action: str,
        queue: object,
        ids: object,
        repair: Callable[[ManagedQueue, int | str], TaskInfo],
        target: str | None = None,
    ) -> list[Record] | Waiter:
        found = self._with_action(queue, action)
        wanted = [id_of(task_id) for task_id in (ids if isinstance(ids, list | tuple) else [ids])]
        if not 1 <= len(wanted) <= PAGE_MAX:
            raise BoxError.procedure(f"the number of ids must be 1 to {PAGE_MAX}")
        into = {} if target is None else {"target": target}
        return self._box.in_slices(self._repair_steps(action, found, wanted, repair, into), size=REPAIRS - 1)

    def _repair_steps(
        self,
        action: str,
        queue: ManagedQueue,
        ids: list[int | str],
        repair: Callable[[ManagedQueue, int | str], TaskInfo],
        into: dict[str, str],
    ) -> Steps[list[Record]]:
        """Repair a task in each step. A slice is logged when its transaction has committed."""
        repaired: list[Record] = []
        logged = 0
        for task_id in ids:
            try:
                repaired.append(describe_task(repair(queue, task_id)))
            except BoxError as error:
                if not logged:
                    raise
                raise BoxError.with_message(
                    error.code, f"{error.message}; before it, {logged} of {len(ids)} tasks were repaired"
                ) from error
            if len(repaired) - logged == REPAIRS or len(repaired) == len(ids):
                self._log(action, queue, ids[logged : len(repaired)], **into)
                logged = len(repaired)
            yield
        return repaired

    def _change(
        self, action: str, name: object, change: Callable[[ManagedQueue], object], **options: object
    ) -> Record:
        found = self._with_action(name, action)
        change(found)
        self._log(action, found, [], **({"options": options} if options else {}))
        return describe_queue(found)

    def _queue(self, name: object, what: str = "queue") -> ManagedQueue:
        if not isinstance(name, str):
            raise BoxError.procedure(f"{what} must be the name of a queue")
        return self._queues.find(name)

    def _with_action(self, name: object, action: str) -> ManagedQueue:
        queue = self._queue(name)
        if action not in queue.actions:
            has = ", ".join(sorted(queue.actions)) or "none"
            raise BoxError.procedure(f'the queue "{queue.name}" has no {action}; its actions: {has}')
        return queue

    def _log(self, action: str, queue: ManagedQueue | None, ids: list[int | str], **fields: object) -> None:
        """Log a repair when its transaction has committed."""
        if queue is not None:
            fields = {"queue": queue.name, **fields}
        if ids:
            more = ", …" if len(ids) > _LOGGED_MAX else ""
            fields |= {"count": len(ids), "ids": ", ".join(map(str, ids[:_LOGGED_MAX])) + more}
        log_action(self._box, action, **fields)


def _page(tasks: Iterable[TaskInfo | None], limit: int, data_size: int | None) -> Steps[list[Record]]:
    """Return up to `limit` tasks, looking at one in each step; payloads are cut to a size, if it is given."""
    found: list[Record] = []
    for task in tasks:
        if task is not None:
            record = describe_task(task)
            if data_size is not None:
                record["data"] = cut_payload(record["data"], data_size)
            found.append(record)
            if len(found) >= limit:
                break
        yield
    return found
