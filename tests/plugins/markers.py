"""Markers that say what a test needs, derived from its fixtures and from the names that its code uses.

`server`, `process`, `spark` and `unit` are set here; `unit` is what needs none of the others. The markers
`real_tarantool`, `node`, `perl`, `carbon` and `prometheus` stand in the tests: often only one parameter needs
the program.
A test marked `unit` that starts a process fails.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Generator, Iterator
from functools import cache
from types import CodeType, FunctionType, ModuleType

import pytest

SOURCES = {
    ("tests.running_server", "RunningServer"): "server",
    ("iproto_server.testing.serving", "serve"): "server",
    ("iproto_server.testing.logged_process", "LoggedProcess"): "process",
    ("tests.real_tarantool", "RealTarantool"): "process",
    ("tests.programs", "require_program"): "process",
    ("pyspark_tarantool.session", "start"): "spark",
}
"""Module and name of what starts something: the marker of the tests that use it."""

FIXTURES = {"pytester": "process"}
"""Fixture of a plugin: the marker of the tests that use it."""

PROCESS_MODULES = {"subprocess", "multiprocessing"}
MODULES = ("tests.", "bench.")
"""Functions of these packages are looked into."""

NEEDS = ("server", "process", "spark", "real_tarantool", "node", "perl", "carbon", "prometheus")
PROCESS_EVENTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}

_running: list[pytest.Item] = []
_started: list[str] = []


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _used(function: FunctionType) -> Iterator[object]:
    """Yields: the values of the global names that a function uses, and of modules' attributes."""
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        yield value
        if isinstance(value, ModuleType) and value.__name__.startswith(
            (*MODULES, "pyspark_tarantool.session")
        ):
            yield from (vars(value)[attribute] for attribute in names & vars(value).keys())


def _functions(value: object) -> Iterator[FunctionType]:
    if isinstance(value, FunctionType):
        yield value
    elif isinstance(value, type):
        for member in vars(value).values():
            inner = getattr(member, "__func__", getattr(member, "fget", member))
            if isinstance(inner, FunctionType):
                yield inner


@cache
def markers_of(start: object) -> frozenset[str]:
    """Find what a function may start, through the helpers that it calls.

    Parameters:
        start: A test, a fixture, or a value of a parameter.

    Returns:
        Names of markers.
    """
    found: set[str] = set()
    seen: set[int] = set()
    waiting: list[object] = [start]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, ModuleType):
            if value.__name__ in PROCESS_MODULES:
                found.add("process")
            continue
        where = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if where in SOURCES:
            found.add(SOURCES[where])
        elif isinstance(where[0], str) and where[0].startswith(MODULES):
            waiting += [used for inner in _functions(value) for used in _used(inspect.unwrap(inner))]
            waiting += getattr(value, "__mro__", ())[1:]
    return frozenset(found)


def _sources(item: pytest.Item) -> Iterator[object]:
    """Yields: a test, its parameters and its fixtures, those of the plugins of pytest left out."""
    if isinstance(item, pytest.Function):
        function = inspect.unwrap(item.function)
        yield getattr(getattr(function, "hypothesis", None), "inner_test", function)
        if hasattr(item, "callspec"):
            yield from item.callspec.params.values()
        for name in item.fixturenames:
            for fixture in item._fixtureinfo.name2fixturedefs.get(name, ())[-1:]:
                if fixture.func.__module__.startswith(MODULES):
                    yield inspect.unwrap(fixture.func)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Set the markers before `-m` selects. The hooks of folders, registered later, have run by now."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        found = {marker for name, marker in FIXTURES.items() if name in fixtures}
        for source in _sources(item):
            if isinstance(source, FunctionType | type):
                found |= markers_of(source)
        for name in sorted(found):
            item.add_marker(name)
        if not any(item.get_closest_marker(name) for name in NEEDS):
            item.add_marker("unit")


def _note_process(event: str, arguments: tuple[object, ...]) -> None:
    if event in PROCESS_EVENTS and _running:
        _started.append(f"{event} {arguments[0] if arguments else ''}")


def pytest_configure() -> None:
    """Watch the starts of processes."""
    sys.addaudithook(_note_process)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Fail a test that starts a process and is marked `unit`."""
    del _started[:]
    _running.append(item)
    try:
        yield
    finally:
        _running.pop()
    if _started and item.get_closest_marker("unit"):
        pytest.fail(f"a test marked `unit` started {_started[0]}: mark it `process`", pytrace=False)
