"""A server of one dialect without sockets, with many tasks in each state, whose turns are measured."""

from __future__ import annotations

import inspect
from typing import Any, Final, cast

from iproto_server import Application, Box, Waiter
from iproto_server.app import Procedures
from iproto_server.server.applications.application_queues import ApplicationQueues
from iproto_server.server.operator_calls import PREFIX, OperatorCalls
from iproto_server.server.operator_view import OperatorView
from iproto_server.server.schedules.schedule_calls import ScheduleCalls
from iproto_server.server.schedules.scheduler import Scheduler
from queue_lua_compat.legacy import LegacyQueue
from queue_lua_compat.tubes.procedures import METHODS
from queue_lua_compat.tubes.procedures import Procedures as TubeProcedures
from queue_lua_compat.tubes.queue import Queue
from queue_lua_compat.tubes.tube import Tube
from queue_lua_compat.tutorial import TutorialQueue
from tests.queue_lua_compat.slices.meter import MeteredClock
from tests.queue_lua_compat.tubes.tubes_server import core_drivers

PAGE: Final = 1000
DELAY: Final = 1e6


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
    """

    def __init__(self, dialect: str, many: int) -> None:
        self.dialect = dialect
        self.many = many
        self.clock = MeteredClock()
        self.meter = self.clock.meter
        self.box = Box(clock=self.clock)
        self.application = Application("queues")
        match dialect:
            case "tutorial":
                TutorialQueue(self.application)
            case "legacy":
                LegacyQueue(self.application)
            case _:
                TubeProcedures(self.application, Queue(self.application, core_drivers()))
        for setup in self.application.setups:
            self.box.run(self.box.session.background, setup, self.box)
        self.procedures = Procedures([self.application])
        queues = ApplicationQueues(self.box, lambda: [self.application])
        absent = cast(Any, None)  # only `status` needs the rest of a server
        view = OperatorView(absent, self.box, absent, absent, absent, absent, queues)
        scheduler = Scheduler(self.box, queues)
        calls = ScheduleCalls(self.box, queues, scheduler)
        self.operator = OperatorCalls(self.box, view, queues, cast(Any, None), calls)
        self.client = Caller(self)
        if self.is_tube:
            for name in ("jobs", "other"):
                self.client.call("queue.create_tube", name, dialect, {})
        elif self.is_legacy:
            for name in ("jobs", "other"):
                # The first call in a space creates an index, in one piece.
                self.client.call("queue.put_unique", 0, name, 0, 0, 0, 0, "x")

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
