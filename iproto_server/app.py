"""Applications: stored procedures and application hooks.

from iproto_server import Application, Box

app = Application("jobs")

@app.setup
def create_schema(box: Box) -> None:
    jobs = box.schema.create_space("jobs", format=[("id", "unsigned"), ("data", "any")], if_not_exists=True)
    jobs.create_index("primary", parts=["id"], if_not_exists=True)

@app.procedure("jobs.add")
def add(box: Box, id: int, data: object) -> Tuple:
    return box.space.jobs.insert([id, data])
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final, TypeVar
from weakref import WeakSet

from iproto_server.box import Box
from iproto_server.managed_queue import ManagedQueue
from iproto_server.native._native import ProcedureState

Function = TypeVar("Function", bound=Callable[..., Any])
Finder = Callable[[str], Callable[..., Any] | None]
Metrics = Callable[[Box], Mapping[str, int | float]]
Queues = Callable[[Box], Iterable[ManagedQueue]]
QueueFinder = Callable[[Box, str], ManagedQueue | None]

RELOAD: Final = "package.reload"
RELOAD_COUNT: Final = "package.reload.count"
_PACKED_MAX: Final = 32
_SERVER_PROCEDURES: Final = frozenset({RELOAD, RELOAD_COUNT})
_SERVER_PREFIXES: Final = ("box", "operator")
"""Names of the server's own procedures begin with one of these and a dot."""


def packed_arguments(*numbers: int) -> Callable[[Function], Function]:
    """Leave arguments of a procedure packed, which only stores or answers them.

    The function gets each of them as a `Raw`. Values in rows and results may be `Raw`, so what a client has
    sent is stored without being unpacked and packed again, and keeps its exact bytes.

    Parameters:
        numbers: the numbers of the arguments, from 0, which is the first one behind the box, to 31.

    Raises:
        ValueError: a number is outside of that range.
    """
    for number in numbers:
        if not 0 <= number < _PACKED_MAX:
            raise ValueError(f"a packed argument has a number from 0 to {_PACKED_MAX - 1}, not {number}")

    def mark(function: Function) -> Function:
        function.packed_arguments = numbers  # type: ignore[attr-defined]
        return function

    return mark


class Procedure(ProcedureState):
    """A function that clients call by name.

    Parameters:
        name: the name in CALL.
        function: the function; it gets the box and the arguments of the call.
        is_async: whether it is a coroutine function.
        is_autonomous: whether it is not called as one transaction, as functions of Lua are not.

    Attributes:
        packed: bits of the arguments that stay packed; see `packed_arguments`.
    """

    __slots__ = ()

    def misfit(self, arguments: list[Any]) -> str | None:
        """Return why the arguments do not match the function's parameters; None if they do."""
        try:
            inspect.signature(self.function).bind(None, *arguments)
        except TypeError as error:
            return str(error)
        return None


class Application:
    """The application object of `iproto-server serve MODULE:APP`.

    The client gets the result of a procedure: None is no value, a Python tuple is several values, anything
    else is one value, and a `Waiter` answers later. An exception rolls back the procedure's changes, and
    becomes the client's error.

    Parameters:
        name: the application's name in logs.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.procedures: dict[str, Procedure] = {}
        self.finders: dict[str, Finder] = {}
        self.cached_prefixes: set[str] = set()
        self.caches: WeakSet[Procedures] = WeakSet()
        self.setups: list[Callable[[Box], None]] = []
        self.backgrounds: list[Callable[[Box], Coroutine[Any, Any, object]]] = []
        self.stops: list[Callable[[Box], None]] = []
        self.reloads: list[Callable[[Box], None]] = []
        self.metric_sources: list[Metrics] = []
        self.queue_sources: list[Queues] = []
        self.queue_finders: list[QueueFinder] = []

    def setup(self, function: Function) -> Function:
        """Run the function (of the box) at every start, as admin, in one transaction, before clients connect.

        A reload runs the setups of the new code of all applications in one transaction.

        Raises:
            TypeError: the function is not a plain function.
        """
        _check_plain("a setup", function)
        self.setups.append(function)
        return function

    def on_stop(self, function: Function) -> Function:
        """Run the function (of the box) when the server stops, after the last client has disconnected.

        Raises:
            TypeError: the function is not a plain function.
        """
        _check_plain("an on_stop", function)
        self.stops.append(function)
        return function

    def on_reload(self, function: Function) -> Function:
        """Run the function (of the box) of the old code when a reload has put new code in force.

        It ends resources outside the box and the server: timers, threads, files.

        Raises:
            TypeError: the function is not a plain function.
        """
        _check_plain("an on_reload", function)
        self.reloads.append(function)
        return function

    def background(self, function: Function) -> Function:
        """Run the coroutine function (of the box) from the start to the stop of the server, as admin.

        Each stretch between two awaits is a transaction of its own. The task is cancelled when the server
        stops, or by a reload; the background tasks of the new code start when all old ones have ended.

        Raises:
            TypeError: the function is not a coroutine function.
        """
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"a background task must be an async function, not {function!r}")
        self.backgrounds.append(function)
        return function

    def metrics(self, function: Metrics) -> Metrics:
        """Report the numbers that the function (of the box) returns, by name, to Graphite.

        Raises:
            TypeError: the function is not a plain function.
        """
        _check_plain("a metrics", function)
        self.metric_sources.append(function)
        return function

    def queues(self, function: Queues) -> Queues:
        """Show operators the queues that the function (of the box) returns, at the time of the call.

        Raises:
            TypeError: the function is not a plain function.
        """
        _check_plain("a queues", function)
        self.queue_sources.append(function)
        return function

    def queue_by_name(self, function: QueueFinder) -> QueueFinder:
        """Let schedules put into queues that begin with their first task, which `queues` does not return yet.

        The function (of the box and a name) returns the queue, or None if its name is not such a queue's.

        Raises:
            TypeError: the function is not a plain function.
        """
        _check_plain("a queue_by_name", function)
        self.queue_finders.append(function)
        return function

    def procedure(self, name: str) -> Callable[[Function], Function]:
        """Let clients call the function.

        A plain function runs as one transaction. An async function may wait; each stretch between two awaits
        is a transaction of its own.

        Parameters:
            name: the name clients use, such as "jobs.add".

        Raises:
            TypeError: the name is not a string, as when the decorator lacks its parentheses.
            ValueError: the name is taken, or belongs to the server ("box.…", "operator.…").
        """
        if not isinstance(name, str):
            raise TypeError(f'a procedure needs a name: @app.procedure("…"), not {name!r}')

        def register(function: Function) -> Function:
            if not callable(function):
                raise TypeError(f"the procedure {name!r} must be a function, not {function!r}")
            if not name or _is_of_the_server(name):
                raise ValueError(f"a procedure cannot be named {name!r}")
            if name in self.procedures:
                raise ValueError(f"the procedure {name!r} is defined twice in {self.name!r}")
            self.procedures[name] = Procedure(name, function, inspect.iscoroutinefunction(function))
            return function

        return register

    def procedures_under(self, prefix: str, *, is_cached: bool = False) -> Callable[[Finder], Finder]:
        """Let the function find procedures that appear and disappear while the server runs.

        It gets the name of a call that begins with the prefix and is not a procedure's. It returns a plain
        function to be called with the box and the arguments, or None. The caller's rights are checked before.

        Parameters:
            prefix: the prefix of the names, such as "jobs.by_name.".
            is_cached: whether a function that was found is called without asking again, which is faster. The
                application calls `forget_procedures` when the answer changes. None is never cached.

        Raises:
            TypeError: the prefix is not a string, or the function is not plain.
            ValueError: the prefix is empty, taken, or belongs to the server.
        """
        if not isinstance(prefix, str):
            raise TypeError(f'a finder needs a prefix: @app.procedures_under("…"), not {prefix!r}')

        def register(function: Finder) -> Finder:
            _check_plain("a procedures_under", function)
            if not prefix or _is_of_the_server(prefix):
                raise ValueError(f"procedures cannot begin with {prefix!r}")
            if prefix in self.finders:
                raise ValueError(f"the procedures under {prefix!r} are defined twice in {self.name!r}")
            self.finders[prefix] = function
            if is_cached:
                self.cached_prefixes.add(prefix)
            return function

        return register

    def forget_procedures(self, prefix: str) -> None:
        """Ask the finder again for each procedure under a prefix that it has found before.

        Parameters:
            prefix: a prefix that was given to `procedures_under`.

        Raises:
            ValueError: no finder has that prefix.
        """
        if prefix not in self.finders:
            raise ValueError(f"{self.name!r} finds no procedures under {prefix!r}")
        for procedures in self.caches:
            procedures.forget(prefix)


def _is_of_the_server(name: str) -> bool:
    return name in _SERVER_PROCEDURES or name.partition(".")[0] in _SERVER_PREFIXES


def _check_plain(what: str, function: object) -> None:
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise TypeError(f"{what} function must be a plain function, not {function!r}")


class ApplicationConflict(Exception):
    """Two applications define one name; the message is one line with all three names."""


class Procedures:
    """The procedures of all applications.

    Parameters:
        applications: the applications.

    Attributes:
        by_name: the procedures by name.

    Raises:
        ApplicationConflict: two of them define one name.
    """

    def __init__(self, applications: Iterable[Application]) -> None:
        self.by_name: dict[str, Procedure] = {}
        self._finders: dict[str, Finder] = {}
        self._found: dict[str, list[str]] = {}
        owners: dict[str, Application] = {}
        for application in applications:
            for name in (*application.procedures, *application.finders):
                first = owners.setdefault(name, application)
                if first is not application or name in self.by_name or name in self._finders:
                    raise ApplicationConflict(
                        f'the applications "{first.name}" and "{application.name}" both define "{name}";'
                        " serve them in two processes"
                    )
            self.by_name.update(application.procedures)
            self._finders.update(application.finders)
            self._found.update((prefix, []) for prefix in application.cached_prefixes)
            application.caches.add(self)

    def find(self, name: str) -> Procedure | None:
        """Find a procedure with the functions of `procedures_under`.

        Parameters:
            name: a name that `by_name` does not have.
        """
        for prefix, find in self._finders.items():
            if name.startswith(prefix):
                function = find(name)
                if function is not None:
                    procedure = Procedure(name, function, is_async=False)
                    found = self._found.get(prefix)
                    if found is not None:
                        self.by_name[name] = procedure
                        found.append(name)
                    return procedure
        return None

    def forget(self, prefix: str) -> None:
        """Drop the cached procedures of a finder.

        Parameters:
            prefix: the finder's.
        """
        for name in self._found.get(prefix, ()):
            del self.by_name[name]
        if prefix in self._found:
            self._found[prefix] = []
