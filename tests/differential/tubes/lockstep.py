"""Two servers of tubes whose clients send the same calls, and whose data directories change hands."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.differential.tubes.conversation import PAUSE, Step
from tests.differential.tubes.deliberate import DELIBERATE
from tests.differential.tubes.servers import Kind, Server, start
from tests.differential.tubes.sides import Outcome, Side

SNAPSHOT = "box.snapshot"


class Passing(StrEnum):
    """How the servers end before each gets the other's data directory.

    Attributes:
        STOP: By SIGTERM.
        KILL: By SIGKILL.
        SNAPSHOT: By SIGKILL, after a snapshot.
    """

    STOP = "stop"
    KILL = "kill"
    SNAPSHOT = "snapshot"


class _Home(NamedTuple):
    """A data directory with the server that has it now, and its clients."""

    directory: Path
    kind: Kind
    server: Server
    side: Side


class Pair:
    """Two servers.

    Parameters:
        ours: What serves the tubes on the one side.
        theirs: What serves them on the other: a module of Lua where differences are not mere faults.
        directory: An empty directory for their files.
        is_logged: Whether they write logs, so that their directories can change hands.
    """

    def __init__(self, ours: Kind, theirs: Kind, directory: Path, *, is_logged: bool = False) -> None:
        self._is_logged = is_logged
        self._directory = directory
        self._homes = [self._home(theirs), self._home(ours)]
        self.is_same_module = Kind.PYTHON not in (ours, theirs)

    def _home(self, kind: Kind) -> _Home:
        directory = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=self._directory))
        server = start(kind, directory, is_logged=self._is_logged)
        return _Home(directory, kind, server, Side(server.host, server.port))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for home in self._homes:
            home.side.close()
            if error is None:
                home.server.stop()
            else:
                home.server.process.kill()

    @property
    def theirs(self) -> Side:
        """The clients of the other server."""
        return self._homes[0].side

    @property
    def ours(self) -> Side:
        """The clients of ours."""
        return self._homes[1].side

    def pass_directories(self, passing: Passing, visit: Callable[[Side, Side], None]) -> None:
        """End both servers, let a real Tarantool have both directories, and start each in the other's.

        Parameters:
            passing: How they end.
            visit: Called while Tarantools have the directories, with the clients of ours and of theirs.
        """
        self._end(passing)
        homes = self._homes
        self._start([Kind.TARANTOOL, Kind.TARANTOOL])
        visit(self.ours, self.theirs)
        self._end(passing)
        self._homes.reverse()
        self._start([homes[0].kind, homes[1].kind])

    def _end(self, passing: Passing) -> None:
        for home in self._homes:
            if passing is Passing.SNAPSHOT:
                home.side.call(SNAPSHOT)
            if passing is Passing.STOP:
                # Else whether a server notices the end of a connection before its own is chance.
                home.side.leave_all()
                home.server.stop()
            else:
                home.server.process.kill()
            home.side.lose_connections()

    def _start(self, kinds: list[Kind]) -> None:
        homes = []
        for home, kind in zip(self._homes, kinds, strict=True):
            server = start(kind, home.directory, is_logged=True)
            home.side.connect(server.host, server.port)
            homes.append(home._replace(kind=kind, server=server))
        self._homes = homes


class Lockstep:
    """A conversation of clients with both servers.

    Parameters:
        pair: The servers.
        tell: Called with each step.
    """

    def __init__(self, pair: Pair, tell: Callable[[str], None]) -> None:
        self._pair = pair
        self._tell = tell
        self._busy: set[str] = set()
        self._done = {""}
        self._seen: dict[str, object] | None = None
        """What there was on our side after the last step."""
        self.steps = 0
        self.deliberate: Counter[str] = Counter()

    def begin(self, kind: str, options: dict[str, Any]) -> None:
        """Create the same tube on both servers, without anything else."""
        self._tell(f"create_tube {kind} {options}")
        for side in (self._pair.theirs, self._pair.ours):
            side.clear()
            side.begin(kind, dict(options))
        assert self._pair.ours.look() == self._pair.theirs.look()

    def go_on(self, step: Step) -> bool:
        """Make a client's call, and compare the answers of both servers.

        Returns:
            Whether the two can still be compared.
        """
        if step == PAUSE:
            return True
        if step.who in self._busy and step.action != "leave":
            return True
        self._tell(str(step))
        self._done.add(step.action)
        self.steps += 1
        before = self._pair.ours.look() if self._seen is None else self._seen
        theirs, ours = self._pair.theirs.do(step), self._pair.ours.do(step)
        if step.action == "leave":
            self._busy.discard(step.who)
        elif step.action == "wait":
            self._busy.add(step.who)
        elif not self._compare(step, ours, theirs):
            return False
        return self._answer_those_who_waited(step) and self._look(step, ours, before)

    def pass_directories(self, passing: Passing) -> bool:
        """Let the servers change directories, and compare what they make of them.

        Returns:
            Whether the two can still be compared.
        """
        self._tell(f"directories change hands: {passing}")
        self._busy.clear()
        self._seen = None
        step = Step("nobody", passing)
        results = []

        def visit(ours: Side, theirs: Side) -> None:
            results.append((ours.look(), theirs.look()))

        self._pair.pass_directories(passing, visit)
        results.append((self._pair.ours.look(), self._pair.theirs.look()))
        return all(
            self._compare(step, {what: seen}, {what: theirs[what]})
            for ours, theirs in results
            for what, seen in ours.items()
        )

    def _compare(self, step: Step, ours: object, theirs: object) -> bool:
        if ours == theirs:
            return True
        for difference in DELIBERATE:
            if difference.between_modules < self._pair.is_same_module:
                continue
            if difference.after in self._done and difference.applies(step, ours, theirs):
                self._tell(f"on purpose: {difference.reason}")
                self.deliberate[difference.reason] += 1
                return not difference.is_over
        raise AssertionError(f"{step}\nours:   {ours}\ntheirs: {theirs}")

    def _answer_those_who_waited(self, step: Step) -> bool:
        ours, theirs = self._pair.ours.waiting(), self._pair.theirs.waiting()
        if not self._compare(step, {"waiting": sorted(ours)}, {"waiting": sorted(theirs)}):
            return False
        for who in sorted(self._busy - ours):
            self._busy.remove(who)
            if not self._compare(step, self._pair.ours.answer_to(who), self._pair.theirs.answer_to(who)):
                return False
        return True

    def _look(self, step: Step, answer: Outcome | None, before: dict[str, object]) -> bool:
        ours, theirs = self._pair.ours.look(), self._pair.theirs.look()
        self._seen = ours
        if ours != theirs and answer is not None and answer[0] == "error" and not self._pair.is_same_module:
            # The module keeps the changes of a call that failed.
            assert ours == before, f"{step} failed\nbefore: {before}\nafter:  {ours}"
            return False
        return all(self._compare(step, {what: seen}, {what: theirs[what]}) for what, seen in ours.items())
