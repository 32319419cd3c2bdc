"""Sessions of the queue: a session may have several connections, and outlives the last of them for a while.

Source: README of github.com/tarantool/queue, "Session identify".
"""

from __future__ import annotations

import heapq
import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID, uuid4

from iproto_server import Box, BoxError, DueTimer, Steps, Tuple, Waiter, pause_after
from queue_lua_compat.retries import Retries
from queue_lua_compat.tubes import timestamps
from queue_lua_compat.tubes.arguments import as_text
from queue_lua_compat.tubes.driver import follow, unfollow
from queue_lua_compat.tubes.system.system_spaces import (
    QUEUE,
    SESSION_IDS,
    SHARED_SESSIONS,
    TAKEN,
    CurrentSpace,
)

logger = logging.getLogger("queue_lua_compat.tubes")

_UUID_BYTES = 16
_ENDS = 20
"""The number of sessions that end in one pass, each with up to a hundred tasks in a slice."""
_EXPIRES, _ACTIVE = 1, 2
_RELEASES: Final = 100
"""The number of tasks of an ended session that are read at once."""
_LOGGED_TUBES: Final = 3
"""Maximum number of lines in the log about the end of a session."""

_Taken = tuple[str, int, Any]
"""A taken task: its session's UUID, its tube's number, its id."""


class Sessions:
    """Maps connections to sessions, and ends sessions that have had no connection for too long.

    A session's UUID is a string of 16 bytes, as from Lua's `uuid.bin()`.

    Parameters:
        box: the box.
        on_remove: releases the tasks of a session, given its UUID; runs within the current transaction.

    Attributes:
        ttr: the seconds that a session outlives its last connection.
        expiry: the timer for sessions without a connection.
        ends: a heap of times and sessions that end then, including sessions that have been resumed since.
    """

    def __init__(self, box: Box, on_remove: Callable[[str], object]) -> None:
        self._box = box
        self._on_remove = on_remove
        self._ids = CurrentSpace(box, SESSION_IDS)
        self._shared = CurrentSpace(box, SHARED_SESSIONS)
        self._closed = Retries(box, self.disconnect, logger, "end the sessions of connections")
        self.ttr: float = 0
        self.ends: list[tuple[int, str]] = []
        self.expiry = self._event()

    # -- start and stop --

    def start(self) -> None:
        """Restore stored sessions: without `ttr` they end, otherwise they expire after their own."""
        self._begin()
        for session in self._shared.current().select():
            if not self.ttr > 0:
                self._on_remove(session[0])
                self._shared.current().delete([session[0]])
            elif session[_ACTIVE]:
                self._deactivate(session[0])
            else:
                self._changed(None, session)

    def resume(self) -> None:
        """Continue with the sessions of the previous code generation."""
        self._begin()
        for session in self._shared.current().index["active"].pairs([False]):
            self._changed(None, session)

    def stop(self) -> None:
        """Stop ending sessions until the next start."""
        self.expiry.stop()
        unfollow(self._box, SHARED_SESSIONS, self._changed)
        self.ends.clear()

    def follow(self) -> None:
        """Follow the changes of the space, which may have been created again."""
        follow(self._shared.current(), self._changed, self._undone)

    # -- for connections --

    def identify(self, connection_id: int, session_uuid: object = None) -> str:
        """Return the UUID of a connection's session.

        Parameters:
            connection_id: the id of the connection.
            session_uuid: the session to join; None for the current one, or a new one.

        Raises:
            BoxError: the UUID is invalid, or there is no such session.
        """
        row = self._ids.current().get([connection_id])
        current: str | None = None if row is None else row[1]
        if session_uuid is None:
            return self._new(connection_id) if current is None else current
        wanted = as_text(session_uuid)
        if not isinstance(wanted, str) or len(_packed(wanted)) != _UUID_BYTES:
            raise BoxError.procedure("Invalid UUID format.")
        shared = self._shared.current().get([wanted])
        if shared is None and self._ids.current().index["uuid"].first([wanted]) is None:
            raise BoxError.procedure(f"The UUID {shown(wanted)} is unknown.")
        if current != wanted:
            if current is not None:
                self.disconnect(connection_id)
            self._ids.current().insert([connection_id, wanted])
        if shared is not None:
            self._shared.current().update([wanted], [("=", _EXPIRES, 0), ("=", _ACTIVE, True)])
        return wanted

    def disconnect(self, connection_id: int) -> None:
        """Remove a connection from its session. Without another connection the session ends after `ttr`."""
        row = self._ids.current().delete([connection_id])
        if row is None:
            return
        session_uuid: str = row[1]
        if self._ids.current().index["uuid"].first([session_uuid]) is not None:
            return
        if self.ttr > 0:
            self._deactivate(session_uuid)
        else:
            self._on_remove(session_uuid)
            self._shared.current().delete([session_uuid])

    def is_known(self, session_uuid: str) -> bool:
        """Whether a session exists."""
        return self._shared.current().get([session_uuid]) is not None

    def closed(self, connection_id: int) -> None:
        """Remove a closed connection from its session; retried if that cannot be stored."""
        self._closed.run([connection_id])

    # -- internal --

    def _begin(self) -> None:
        self.expiry.stop()
        self.expiry = self._event()
        self.expiry.begin()
        self.follow()

    def _event(self) -> DueTimer:
        return DueTimer(self._box, self._end_expired, "sessions that have ended")

    def _new(self, connection_id: int) -> str:
        session_uuid = uuid4().bytes_le.decode("utf-8", "surrogateescape")
        if self._box.session.current.is_closed:
            # A coroutine may continue after its client has disconnected: nothing would end the session.
            return session_uuid
        self._ids.current().insert([connection_id, session_uuid])
        self._shared.current().insert([session_uuid, 0, True])
        return session_uuid

    def _deactivate(self, session_uuid: str) -> None:
        self._shared.current().replace([session_uuid, timestamps.moment_after(self._box, self.ttr), False])

    def _changed(self, old: Tuple | None, new: Tuple | None) -> None:
        """Record when a session ends. Runs for every change of the space, by any client."""
        if new is not None and not new[_ACTIVE]:
            heapq.heappush(self.ends, (new[_EXPIRES], new[0]))
            self.expiry.schedule(timestamps.in_seconds(new[_EXPIRES]))

    def _undone(self, old: Tuple | None, new: Tuple | None) -> None:
        if old is not None and not old[_ACTIVE]:
            heapq.heappush(self.ends, (old[_EXPIRES], old[0]))
            self.expiry.schedule_immediately(timestamps.in_seconds(old[_EXPIRES]))

    def _end_expired(self) -> float:
        """End expired sessions, and return when the next one expires."""
        now, ended = self.expiry.now(), 0
        while self.ends:
            moment, session_uuid = self.ends[0]
            if timestamps.in_seconds(moment) > now or ended == _ENDS:
                return timestamps.in_seconds(moment)
            ended += 1
            self._box.on_rollback(partial(heapq.heappush, self.ends, heapq.heappop(self.ends)))
            session = self._shared.current().get([session_uuid])
            if session is not None and not session[_ACTIVE] and session[_EXPIRES] <= moment:
                self._on_remove(session_uuid)
                self._shared.current().delete([session_uuid])
        return math.inf


class TaskReleases:
    """Releases the tasks of sessions that have ended.

    Parameters:
        box: the box.
        tubes: the tubes by name.
        is_running: returns whether the queue runs and the box is writable.
        is_known: returns whether a session exists.

    Attributes:
        is_starting: whether all tasks of a session are released at once.
    """

    def __init__(
        self,
        box: Box,
        tubes: Mapping[str, Any],
        is_running: Callable[[], bool],
        is_known: Callable[[str], bool],
    ) -> None:
        self._box = box
        self._tubes = tubes
        self._is_running = is_running
        self._is_known = is_known
        self._released = Retries(box, self._release_again, logger, "release the tasks of sessions")
        self.is_starting = False

    def release(self, session_uuid: str) -> None:
        """Release the tasks of a session that has ended: the first ones now, the others in later slices.

        A task that cannot be released does not affect others. At the start all are released before clients
        connect.
        """
        steps = self._release_steps(session_uuid)
        if self.is_starting:
            self._box.in_one_slice(steps)
            return
        rest = self._box.in_slices(steps)
        if isinstance(rest, Waiter):
            rest.on_done(partial(self._rest_released, session_uuid, 1))

    def _release_steps(self, session_uuid: str) -> Steps[None]:
        box = self._box
        failed: list[_Taken] = []
        released: Counter[str] = Counter()
        cause: BaseException | None = None
        last: Tuple | None = None
        while page := box.space[TAKEN].index["uuid"].select([session_uuid], limit=_RELEASES, after=last):
            for last in page:  # the next page begins behind the last task of this one
                tube_id, task_id = last[0], last[1]
                taken = box.space[TAKEN].get([tube_id, task_id])
                if taken is None or taken[3] != session_uuid:
                    continue  # others have changed it since the page was read
                row = box.space[QUEUE].index["tube_id"].get([tube_id])
                tube = None if row is None else self._tubes.get(row[0])
                if tube is None:
                    logger.error("Inconsistent queue state: tube %d not found", tube_id)
                    box.space[TAKEN].delete([tube_id, task_id])
                else:
                    released[tube.name] += 1
                    try:
                        box.atomic(tube.give_back, task_id)
                    except BaseException as error:  # noqa: BLE001  # a trigger or callback may raise anything
                        failed.append((session_uuid, tube_id, task_id))
                        cause = cause or error
                yield
        for name, count in released.most_common(_LOGGED_TUBES):
            logger.warning('a session is closed: releasing tasks of tube "%s": %d', name, count)
        if failed:
            logger.error("cannot release tasks of a session, trying again: %d", len(failed), exc_info=cause)
            box.on_commit(partial(self._released.later, failed))

    def _rest_released(self, session_uuid: str, failures: int, rest: Waiter) -> None:
        if rest.error is not None:
            logger.error("cannot release tasks of a session, trying again", exc_info=rest.error)
            self._box.clock.call_later(
                pause_after(failures), partial(self._release_rest, session_uuid, failures)
            )

    def _release_rest(self, session_uuid: str, failures: int) -> None:
        # A read-only instance handles this when it becomes writable.
        if not self._is_running():
            return
        box = self._box
        try:
            rest = box.run(box.session.background, self._release_unknown, session_uuid)
        except BaseException as error:  # noqa: BLE001  # logged there
            rest = Waiter(box.session.background, None)
            rest.finish(error=error)
        if isinstance(rest, Waiter):
            rest.on_done(partial(self._rest_released, session_uuid, failures + 1))

    def _release_unknown(self, session_uuid: str) -> Waiter | None:
        if self._is_known(session_uuid):
            return None  # its end was undone as well, and is tried again
        return self._box.in_slices(self._release_steps(session_uuid))

    def _release_again(self, taken: _Taken) -> None:
        # A read-only instance handles this when it becomes writable.
        if self._box.is_read_only:
            return
        session_uuid, *key = taken
        row = self._box.space[TAKEN].get(key)
        if row is not None and row[3] == session_uuid:
            tube_row = self._box.space[QUEUE].index["tube_id"].get([row[0]])
            tube = None if tube_row is None else self._tubes.get(tube_row[0])
            if tube is not None:
                tube.give_back(row[1])


def shown(session_uuid: str) -> str:
    """Format a session's UUID in the usual way."""
    return str(UUID(bytes_le=_packed(session_uuid)))


def _packed(session_uuid: str) -> bytes:
    return session_uuid.encode("utf-8", "surrogateescape")
