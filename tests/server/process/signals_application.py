"""An application whose procedures do not end, in all the ways that a stop must get along with."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from contextlib import suppress
from typing import NoReturn

from iproto_server import Application, Box

app = Application("signals")


@app.setup
def setup(box: Box) -> None:
    rows = box.schema.create_space("rows", if_not_exists=True)
    rows.create_index("primary", if_not_exists=True)


@app.procedure("put")
def put(box: Box, number: int) -> object:
    return box.space.rows.replace([number])


@app.procedure("numbers")
def numbers(box: Box) -> object:
    return [row[0] for row in box.space.rows.select()]


@app.procedure("loop")
def loop(box: Box) -> NoReturn:
    """A loop that lets nothing out; what it has changed is not committed."""
    box.space.rows.replace([99])
    print("begun", flush=True)
    while True:
        try:
            while True:
                """For ever."""
        except BaseException:  # noqa: BLE001  # as badly written as it can be
            pass


@app.procedure("loop_in_c")
def loop_in_c(box: Box) -> NoReturn:
    """A loop that neither looks for signals nor lets other threads run."""
    print("begun", flush=True)
    sum(itertools.repeat(0))
    raise AssertionError


@app.procedure("sleep")
def sleep(box: Box) -> None:
    print("begun", flush=True)
    time.sleep(3600)


@app.procedure("chatter")
def chatter(box: Box) -> NoReturn:
    """Writes to the log until it blocks."""
    print("begun", flush=True)
    while True:
        logging.getLogger("chatter").error("again and again")


@app.procedure("stubborn")
async def stubborn(box: Box) -> NoReturn:
    """Cannot be cancelled."""
    print("begun", flush=True)
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)


@app.procedure("linger")
def linger(box: Box) -> None:
    """A thread that does not end."""
    threading.Thread(target=time.sleep, args=(3600,), name="lingering").start()
    print("begun", flush=True)
