"""The worker of the campaign with kills: `python -m tests.client.kill_worker ADDRESS TUBE FILE`.

For each task it notes that the work is done, and that the server has confirmed the acknowledgement: a line
`TIME done|acknowledged NUMBER`, with one write each, as it may be killed at any moment.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

from iproto_server.client import NotConnected, Queue, Task

CONCURRENCY = 8
STARTS_EVERY = 0.05
"""Seconds between attempts to connect while the server is down."""


async def work(address: str, tube: str, file: int) -> None:
    """Handle tasks until a signal comes."""

    def note(what: str, number: object) -> None:
        os.write(file, f"{time.time_ns()} {what} {number}\n".encode())

    async def handle(task: Task) -> None:
        note("done", task.data)
        await task.ack()
        note("acknowledged", task.data)

    while True:
        queue = Queue(address, tube=tube)
        try:
            await queue.work(
                handle, concurrency=CONCURRENCY, prefetch=CONCURRENCY, stop_signals=(signal.SIGTERM,)
            )
        except NotConnected:
            await queue.close()
            await asyncio.sleep(STARTS_EVERY)
        else:
            return


def main() -> None:
    """Work as the command line says."""
    address, tube, path = sys.argv[1:]
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    asyncio.run(work(address, tube, file))


if __name__ == "__main__":
    main()
