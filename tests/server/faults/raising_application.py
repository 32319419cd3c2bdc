"""An application whose procedures, triggers and tasks raise whatever a test names."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

from iproto_server import Application, Box, BoxError, Waiter, WaitQueue

app = Application("raising")
seen: list[object] = []
lines: dict[str, WaitQueue] = {}
to_raise: dict[str, str] = {}


class WithoutTextError(Exception):
    """Its text cannot be told."""

    def __str__(self) -> str:
        raise SystemExit(9)


class OwnBaseError(BaseException):
    """An application's own."""


class UnreadableBoxError(BoxError):
    """Its text and all else that is sent of it cannot be read."""

    @property
    def message(self) -> str:
        raise KeyboardInterrupt

    @message.setter
    def message(self, text: str) -> None:
        """It is forgotten."""


def make(name: str) -> BaseException:
    """The exception of that name."""
    if name == "UnreadableBoxError":
        return UnreadableBoxError(32, "x")
    kinds: dict[str, type[BaseException]] = {
        "WithoutTextError": WithoutTextError,
        "OwnBaseError": OwnBaseError,
        "CancelledError": asyncio.CancelledError,
        "GeneratorExit": GeneratorExit,
        "SystemExit": SystemExit,
        "KeyboardInterrupt": KeyboardInterrupt,
        "BaseException": BaseException,
        "ZeroDivisionError": ZeroDivisionError,
    }
    return kinds[name]("x")


def fault(place: str) -> None:
    """Raise what a test wants raised there."""
    if place in to_raise:
        raise make(to_raise[place])


@app.setup
def setup(box: Box) -> None:
    space = box.schema.create_space(
        "log", format=[("id", "unsigned"), ("text", "string")], if_not_exists=True
    )
    space.create_index("primary", parts=["id"], if_not_exists=True)
    space.on_replace(lambda old, new: fault("on_replace"))
    space.before_replace(lambda old, new: fault("before_replace"))
    box.session.on_connect(lambda: fault("on_connect"))
    box.session.on_disconnect(lambda: seen.append(("gone", box.session.id())))
    box.session.on_disconnect(lambda: fault("on_disconnect"))
    box.session.on_auth(lambda user, success: fault("on_auth"))
    lines["line"] = WaitQueue(box)
    box.watch("key", watcher)


@app.metrics
def metrics(box: Box) -> dict[str, int]:
    fault("metrics")
    return {"raising.one": 1}


@app.background
async def background(box: Box) -> None:
    lines.setdefault("background", WaitQueue(box))
    await lines["background"].park(1000, lambda: None)
    fault("background")


def watcher(key: str, value: object) -> None:
    seen.append(("told", value))
    if value is not None:
        fault("watcher")


@app.procedure("fault.set")
def set_fault(box: Box, place: str, name: str) -> None:
    to_raise[place] = name


@app.procedure("fault.clear")
def clear_faults(box: Box) -> None:
    to_raise.clear()
    seen.clear()


@app.procedure("seen")
def seen_so_far(box: Box) -> list[object]:
    return [list(item) if isinstance(item, tuple) else item for item in seen]


@app.procedure("plain")
def plain(box: Box, name: str) -> NoReturn:
    box.space.log.replace([1, "must not stay"])
    raise make(name)


@app.procedure("async")
async def in_coroutine(box: Box, name: str) -> NoReturn:
    box.space.log.replace([2, "must not stay"])
    raise make(name)


@app.procedure("async.late")
async def in_coroutine_late(box: Box, name: str) -> NoReturn:
    await asyncio.sleep(0)
    box.space.log.replace([3, "must not stay"])
    raise make(name)


@app.procedure("async.beside")
async def beside(box: Box, name: str) -> None:
    await asyncio.gather(in_coroutine_late(box, name))


@app.procedure("async.cancels_itself")
async def cancels_itself(box: Box) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


@app.procedure("waits")
def waits(box: Box, name: str) -> Waiter:
    def resume() -> NoReturn:
        box.space.log.replace([4, "must not stay"])
        raise make(name)

    return lines["line"].park(1000, resume)


@app.procedure("waits.on_finish")
def waits_and_fails_after_it(box: Box, name: str) -> Waiter:
    waiter = lines["line"].park(1000, lambda: "resumed")

    def fail() -> NoReturn:
        raise make(name)

    waiter.on_finish = fail
    return waiter


@app.procedure("wake")
def wake(box: Box) -> str:
    box.on_commit(lines["line"].wake)
    return "woken"


@app.procedure("on_commit")
def on_commit(box: Box, name: str) -> str:
    def fail() -> NoReturn:
        raise make(name)

    box.on_commit(fail)
    box.on_commit(lambda: seen.append("committed"))
    return "done"


@app.procedure("on_rollback")
def on_rollback(box: Box, name: str) -> str:
    def fail() -> NoReturn:
        raise make(name)

    box.on_rollback(lambda: seen.append("undone"))
    box.on_rollback(fail)
    raise make("ZeroDivisionError")


@app.procedure("answers")
def answers(box: Box, name: str) -> object:
    class Values(list[Any]):
        def __iter__(self) -> Any:
            raise make(name)

    return Values([1, 2, 3])


@app.procedure("timer")
def timer(box: Box, name: str) -> None:
    def fail() -> NoReturn:
        raise make(name)

    box.clock.call_later(0, fail)
    box.clock.call_later(0, lambda: seen.append("the next timer"))


@app.procedure("background.go_on")
def let_background_go_on(box: Box) -> None:
    box.on_commit(lines["background"].wake)
