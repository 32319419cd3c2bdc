"""A server of one dialect without sockets, with many tasks in each state, whose turns are measured.

A turn is what runs until the event loop serves others: a call, or a timer.
"""

from __future__ import annotations

import heapq
import inspect
import math
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar, cast

from iproto_server import Application, Box, Timer, Waiter
from iproto_server.app import Procedures
from iproto_server.server.applications.application_queues import ApplicationQueues
from iproto_server.server.operators.operator_calls import PREFIX, OperatorCalls
from iproto_server.server.operators.operator_view import OperatorView
from iproto_server.server.schedules.schedule_calls import ScheduleCalls
from iproto_server.server.schedules.scheduler import Scheduler
from queue_lua_compat.legacy import LegacyQueue
from queue_lua_compat.tubes.driver import drivers
from queue_lua_compat.tubes.procedures import METHODS
from queue_lua_compat.tubes.procedures import Procedures as TubeProcedures
from queue_lua_compat.tubes.queue import Queue
from queue_lua_compat.tubes.tube.tube import Tube
from queue_lua_compat.tutorial import TutorialQueue

PAGE: Final = 1000
DELAY: Final = 1e6
_NEVER: Final = 1e9

Result = TypeVar("Result")


class Meter(Protocol):
    """Measures turns."""

    def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function, and measure the turn."""


class MeteredClock:
    """A clock that stands still until it is advanced, for many timers, which are measured.

    Parameters:
        meter: measures them.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._now_ns = 1_600_000_000_000_000_000
        self._timers: list[tuple[int, int, _Timer]] = []
        self._set = 0

    def time_ns(self) -> int:
        """See `Clock`."""
        return self._now_ns

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """See `Clock`."""
        return self._add(self._now_ns + math.ceil(min(delay, _NEVER) * 1e9), callback)

    def call_at(self, moment: float, callback: Callable[[], None]) -> Timer:
        """See `Clock`."""
        return self._add(math.ceil(min(moment, self._now_ns / 1e9 + _NEVER) * 1e6) * 1000, callback)

    def advance(self, seconds: float) -> None:
        """Advance the clock; due timers run in order, each as a turn of its own."""
        end = self._now_ns + round(seconds * 1e9)
        while self._timers and self._timers[0][0] <= end:
            moment, _, timer = heapq.heappop(self._timers)
            self._now_ns = max(self._now_ns, moment)
            if timer.callback is not None:
                self._meter.run(timer.callback)
        self._now_ns = end

    def _add(self, moment: int, callback: Callable[[], None]) -> Timer:
        self._set += 1
        timer = _Timer(callback)
        heapq.heappush(self._timers, (max(moment, self._now_ns), self._set, timer))
        return timer


class _Timer:
    """A scheduled call."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """See `Timer`."""
        self.callback = None


class Caller:
    """A client's session."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._box = world.box
        self.session = self._box.session.open("binary", "127.0.0.1:50000", user="admin")
        for trigger in self._box.session.connect_triggers.functions:
            self._box.run(self.session, trigger)

    def call(self, name: str, *arguments: object) -> Any:
        """Call a procedure, wait for its answer, and return it."""
        box, world = self._box, self._world
        if name.startswith(PREFIX):
            result = world.meter.run(box.run, self.session, world.operator.functions[name], list(arguments))
        else:
            procedure = world.procedures.by_name.get(name) or world.procedures.find(name)
            assert procedure is not None, name
            result = world.meter.run(box.run, self.session, procedure.function, box, *arguments)
        if not isinstance(result, Waiter):
            return result
        world.clock.advance(0)
        assert result.is_done, f"{name} waits"
        if result.error is not None:
            raise result.error
        return result.result

    def close(self) -> None:
        """Close the connection."""
        self.session.is_closed = True
        self.session.end()
        for trigger in self._box.session.disconnect_triggers.functions:
            self._world.meter.run(self._box.run, self.session, trigger)
        self._box.session.close(self.session)
        self._world.clock.advance(0)


class World:
    """A server with a queue, and a second one as the target of moves.

    Parameters:
        dialect: "tutorial", "legacy", or a type of tubes.
        many: the number of tasks in each state that the dialect has.
        meter: measures the turns.
        has_data_index: whether the older queue has the index that the first `put_unique` creates.
    """

    def __init__(self, dialect: str, many: int, meter: Meter, *, has_data_index: bool = False) -> None:
        self.dialect = dialect
        self.many = many
        self.meter = meter
        self.clock = MeteredClock(meter)
        self.box = Box(clock=self.clock)
        self.application = Application("queues")
        match dialect:
            case "tutorial":
                TutorialQueue(self.application)
            case "legacy":
                LegacyQueue(self.application)
            case _:
                TubeProcedures(self.application, Queue(self.application, drivers))
        for setup in self.application.setups:
            self.box.run(self.box.session.background, setup, self.box)
        self.procedures = Procedures([self.application])
        queues = ApplicationQueues(self.box, lambda: [self.application])
        absent = cast(Any, None)  # only `status` needs the rest of a server
        view = OperatorView(absent, self.box, absent, absent, absent, absent, queues, absent)
        scheduler = Scheduler(self.box, queues)
        calls = ScheduleCalls(self.box, queues, scheduler)
        self.operator = OperatorCalls(self.box, view, queues, cast(Any, None), calls)
        self.client = Caller(self)
        if self.is_tube:
            for name in ("jobs", "other"):
                self.client.call("queue.create_tube", name, dialect, {})
        elif self.is_legacy:
            for name in ("jobs", "other"):
                put = "queue.put_unique" if has_data_index else "queue.put"
                self.client.call(put, 0, name, 0, 0, 0, 0, "x")

    @property
    def is_legacy(self) -> bool:
        """Whether it is the older queue."""
        return self.dialect == "legacy"

    @property
    def is_tube(self) -> bool:
        """Whether it has tubes."""
        return self.dialect not in ("tutorial", "legacy")

    @property
    def states(self) -> tuple[str, ...]:
        """The states that tasks can have, each reached from "ready"."""
        if self.dialect == "tutorial":
            return ("delayed", "taken", "ready")
        return ("delayed", "buried", "taken", "ready") if self._has_delays else ("buried", "taken", "ready")

    @property
    def _has_delays(self) -> bool:
        return self.dialect not in ("fifo", "utube")

    def name(self, queue: str = "jobs") -> str:
        """The name that operators use."""
        return {"tutorial": "queue", "legacy": f"queue_0/{queue}"}.get(self.dialect, queue)

    def prepare(self) -> None:
        """Complete the tasks in each state."""
        counts = self.client.call("operator.queue", self.name())["tasks"]
        for state in self.states:
            missing = self.many - counts.get(state, 0)
            if missing <= 0:
                continue
            if state == "delayed":
                self._put(missing, DELAY)
                continue
            self._put(missing, 0)
            if state in ("taken", "buried"):
                # What is ready is taken, too; the state "ready" comes last.
                tasks = self._take(missing)
                if state == "buried":
                    for start in range(0, len(tasks), PAGE):
                        self.client.call("operator.bury", self.name(), tasks[start : start + PAGE])

    def _put(self, count: int, delay: float) -> None:
        for start in range(0, count, PAGE):
            self._put_page(min(PAGE, count - start), delay)

    def _put_page(self, count: int, delay: float) -> None:
        if self.is_tube:
            options = [
                {**({"delay": delay} if delay else {}), "utube": f"{number} {self.clock.time_ns()}"}
                for number in range(count)
            ]
            self.client.call("queue.tube.jobs:put_many", [["x", option] for option in options])
            self.clock.advance(1e-6)
        elif self.is_legacy:
            self.client.call("queue.put_many", 0, "jobs", delay, 0, 0, 0, ["x"] * count)
        else:
            self.client.call("queue.put_many", ["x"] * count, {"delay": delay} if delay else None)

    def _take(self, count: int) -> list[Any]:
        if self.is_tube:
            return [task[0] for task in self.client.call("queue.tube.jobs:take_many", count, 0)]
        if self.is_legacy:
            return [task[0] for task in self.client.call("queue.take_many", 0, "jobs", count, 0)]
        return [task["id"] for task in self.client.call("queue.take_many", count, 0)]

    def ids(self, state: str, limit: int = PAGE) -> list[Any]:
        """Return the ids of tasks in a state."""
        found = self.client.call("operator.tasks", self.name(), {"state": state, "limit": limit})
        return [task["id"] for task in found]

    # -- calls --

    def calls(self) -> dict[str, inspect.Signature]:
        """Return all calls of clients and operators with their parameters."""
        found = {
            name: inspect.signature(procedure.function)
            for name, procedure in self.application.procedures.items()
            if not self.is_tube
        }
        if self.is_tube:
            # Their procedures take any arguments, and pass them to these functions.
            tubes = cast(Any, next(iter(self.application.setups))).__self__
            found |= {
                "queue.create_tube": inspect.signature(tubes.create_tube),
                "queue.statistics": inspect.signature(tubes.statistics),
                "queue.tube": inspect.signature(tubes.tubes),
                **{f"queue.tube.jobs:{name}": inspect.signature(getattr(Tube, name)) for name in METHODS},
            }
        for name in self.operator.functions:
            found[name] = inspect.signature(getattr(self.operator, name.removeprefix(PREFIX), len))
        return found
