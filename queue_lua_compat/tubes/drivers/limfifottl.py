"""Tubes of the type `limfifottl`: as `fifottl`, with a limited capacity; a put may wait for room.

Source: README of github.com/tarantool/queue, "limfifottl".
"""

from __future__ import annotations

from functools import partial

from iproto_server import STILL_WAITING, Box, BoxError, Space, Tuple, Waiter, packed_arguments
from queue_lua_compat.tubes.arguments import chosen, number
from queue_lua_compat.tubes.driver import OnTaskChange, Options, follow, unfollow
from queue_lua_compat.tubes.drivers.fifottl import FifoTtlDriver
from queue_lua_compat.tubes.wait_queues import PUTTING, wait_queue_of

_TRUNCATE = "_truncate"


class LimitedFifoTtlDriver(FifoTtlDriver):
    """A tube with a limited number of tasks.

    Attributes:
        capacity: the limit; 0 for none.
        putting: the puts that wait for room.
    """

    def __init__(self, box: Box, space: Space, on_task_change: OnTaskChange, options: Options) -> None:
        super().__init__(box, space, on_task_change, options)
        self.capacity: object = chosen(options, "capacity", 0)
        self.putting = wait_queue_of(box, space.name, PUTTING, self._put_again)

    @classmethod
    def create_space(cls, box: Box, space_name: str, options: Options) -> Space:
        """Create the space, or check an existing one."""
        if options.get("engine") == "vinyl":
            raise BoxError.procedure("limfifottl queue does not support vinyl engine")
        return super().create_space(box, space_name, options)

    def start(self) -> None:
        """Start as in the base class, and follow removals of tasks."""
        super().start()
        follow(self.space, self._room_changed, self._room_undone)
        follow(self.box.space[_TRUNCATE], self._truncated, self._room_undone)

    def stop(self) -> None:
        """Stop following them."""
        unfollow(self.box, self.space.name, self._room_changed)
        unfollow(self.box, _TRUNCATE, self._truncated)
        super().stop()

    @packed_arguments(0)
    def put(self, data: object, options: Options) -> Tuple | Waiter | None:
        """Store a new task if there is room within the option `timeout`, in seconds."""
        if self._has_room() and not self.putting:
            return self.store(data, options)
        timeout = number(chosen(options, "timeout", 0), "timeout")
        if not timeout > 0:
            return None
        waiter = self.putting.park(timeout, arguments=(data, options))
        if not waiter.is_done:
            # A timeout returns nil, as a put that does not wait.
            assert waiter.timer is not None
            waiter.timer.cancel()
            waiter.timer = self.box.clock.call_later(timeout, partial(waiter.finish, (None,)))
        return waiter

    def adopt(self, task: Tuple) -> Tuple:
        """Store a task of another tube. Raises BoxError if there is no room."""
        if not self._has_room():
            raise BoxError.procedure(f'there is no room in the tube "{self.space.name}"')
        return super().adopt(task)

    def _has_room(self) -> bool:
        capacity = number(self.capacity, "capacity", "")
        return capacity == 0 or self.space.len() < capacity

    def _put_again(self, data: object, options: Options) -> object:
        if not self._has_room():
            return STILL_WAITING
        return self.normalize_task(self.store(data, options))

    def _room_changed(self, old: Tuple | None, new: Tuple | None) -> None:
        if new is None:
            self.box.on_commit(self._wake)

    def _room_undone(self, old: Tuple | None, new: Tuple | None) -> None:
        if self.putting:
            self.box.clock.call_later(0.0, self._wake_all)

    def _truncated(self, old: Tuple | None, new: Tuple | None) -> None:
        if new is not None and new[0] == self.space.id:
            self.box.on_commit(self._wake_all)

    def _wake(self) -> None:
        if self.putting:
            self.putting.wake()

    def _wake_all(self) -> None:
        self.putting.wake(len(self.putting))

    def drop(self) -> None:
        """Remove the tube's space; waiting puts get an error."""
        super().drop()
        self.box.on_commit(self._wake_all)
