"""Handlers that raise what is no Exception, hang, stop their own queue, or go on after a cancellation."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from iproto_server.client import HandlerStuck, Queue, QueueError, Task, tracing
from iproto_server.client.consumer import Consumer
from iproto_server.client.handlers import CANCELLATIONS
from iproto_server.client.retries import FailurePolicy
from iproto_server.client.task import Care
from tests.client.buried import AT_ONCE, _wait_for_buried, stored
from tests.client.support import (
    EXACT,
    TUBES_APPLICATION,
    Sleeps,
    briefly,
    create_tubes,
    run,
    tubes,
    wait_until,
)
from tests.conftest import StartServer
from tests.running_server import RunningServer


async def cancelled_elsewhere(task: Task) -> None:
    """Await something that other code has cancelled."""
    other = asyncio.ensure_future(asyncio.Event().wait())
    other.cancel()
    await other


async def cancels_itself(task: Task) -> None:
    running = asyncio.current_task()
    assert running is not None
    running.cancel()
    await asyncio.sleep(0)


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("fails", [cancelled_elsewhere, cancels_itself])
def test_a_cancelled_error_of_a_handler_is_a_failure(
    start_server: StartServer,
    caplog: pytest.LogCaptureFixture,
    fails: Callable[[Task], Awaitable[None]],
    concurrency: int,
) -> None:
    server = tubes(start_server, jobs=("fifo", {}))

    async def main() -> None:
        done: asyncio.Queue[object] = asyncio.Queue()

        async def handle(task: Task) -> None:
            if task.data == "cancelled":
                await fails(task)
            done.put_nowait(task.data)

        async with Queue(server.address, tube="jobs", backoff=AT_ONCE) as queue:
            for _ in range(concurrency):
                await queue.put("cancelled")
            worker = asyncio.create_task(queue.work(handle, concurrency=concurrency, max_failures=2))
            for number in range(5):
                await queue.put(number)
            assert sorted([await done.get() for _ in range(5)]) == [0, 1, 2, 3, 4]  # type: ignore[type-var]
            assert not worker.done()
            await queue.stop()
            await worker
        assert stored(server.address, "jobs") == {"buried": concurrency}

    run(main)
    assert "CancelledError" in caplog.text


def test_a_loop_by_hand_goes_on_after_one_too(start_server: StartServer) -> None:
    server = tubes(start_server, jobs=("fifottl", {}))

    async def main() -> None:
        async with Queue(server.address, tube="jobs", backoff=AT_ONCE) as queue:
            await queue.put("a")
            attempts = 0
            async for task in queue.consume():
                attempts += 1
                async with task:
                    if attempts < 3:
                        await cancelled_elsewhere(task)
                if attempts == 3:
                    break
        assert stored(server.address, "jobs") == {}

    run(main)


def test_other_exceptions_give_the_task_back_and_end_the_worker(start_server: StartServer) -> None:
    server = tubes(start_server, jobs=("fifo", {}))

    class EndOfWorkError(BaseException):
        pass

    async def main() -> None:
        async def handle(task: Task) -> None:
            raise EndOfWorkError

        queue = Queue(server.address, tube="jobs")
        await queue.put("a")
        with pytest.raises(EndOfWorkError):
            await queue.work(handle, concurrency=2)
        assert stored(server.address, "jobs") == {"ready": 1}

    run(main)


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("is_awaited", [True, False])
def test_a_handler_can_stop_its_queue(start_server: StartServer, concurrency: int, is_awaited: bool) -> None:
    server = tubes(start_server, jobs=("fifo", {}))

    async def main() -> None:
        stops: list[asyncio.Task[None]] = []

        async def handle(task: Task) -> None:
            if is_awaited:
                await queue.stop()
                await queue.stop()
            else:
                stops.append(asyncio.create_task(queue.stop()))
                await stops[0]

        queue = Queue(server.address, tube="jobs")
        await queue.put("a")
        await queue.work(handle, concurrency=concurrency)
        with pytest.raises(QueueError, match="closed"):
            await queue.put("b")
        assert stored(server.address, "jobs") == {}  # it was acknowledged

    run(main)


def test_a_handler_that_hangs_after_its_stop_is_cancelled(
    start_server: StartServer, caplog: pytest.LogCaptureFixture
) -> None:
    server = tubes(start_server, jobs=("fifo", {}))

    async def main() -> None:
        async def handle(task: Task) -> None:
            await queue.stop(0)
            await asyncio.Event().wait()

        queue = Queue(server.address, tube="jobs")
        await queue.put("a")
        await queue.work(handle)
        assert stored(server.address, "jobs") == {"ready": 1}

    run(main)
    gc.collect()
    assert "never retrieved" not in caplog.text


def test_a_second_stop_shortens_the_first(start_server: StartServer) -> None:
    server = tubes(start_server, jobs=("fifo", {}))

    async def main() -> None:
        started = asyncio.Event()

        async def handle(task: Task) -> None:
            started.set()
            await asyncio.Event().wait()

        queue = Queue(server.address, tube="jobs")
        await queue.put("a")
        worker = asyncio.create_task(queue.work(handle))
        await started.wait()
        patient = asyncio.create_task(queue.stop(float("inf")))
        await asyncio.sleep(0.01)
        assert not patient.done()
        await queue.stop(0)
        await patient
        await worker

    run(main)


def test_a_stop_while_the_server_is_away_ends_the_worker(tmp_path: Path) -> None:
    server = RunningServer(tmp_path, [TUBES_APPLICATION])
    create_tubes(server.address, jobs=("fifo", {}))

    async def main() -> None:
        sleeps = Sleeps()

        async def handle(task: Task) -> None:
            """Never called."""

        queue = Queue(server.address, tube="jobs", reconnect=EXACT, sleep=sleeps)
        await queue.connect()
        worker = asyncio.create_task(queue.work(handle))
        await asyncio.to_thread(server.kill)
        assert await sleeps.asked() == 1.0  # until the next attempt to connect
        await queue.stop()
        await worker

    run(main)


def test_a_time_limit_makes_a_task_fail(start_server: StartServer, caplog: pytest.LogCaptureFixture) -> None:
    server = tubes(start_server, jobs=("fifo", {}))

    async def main() -> None:
        sleeps = Sleeps()

        async def handle(task: Task) -> None:
            await asyncio.Event().wait()

        async with Queue(server.address, tube="jobs", sleep=sleeps) as queue:
            await queue.put("a")
            worker = asyncio.create_task(queue.work(handle, time_limit=600, max_failures=1))
            assert await sleeps.next() == 600
            await asyncio.to_thread(_wait_for_buried, server.address)
            await queue.stop()
            await worker

    run(main)
    assert "the handler took longer than its time limit of 600 s" in caplog.text


def test_a_handler_that_swallows_its_cancellation_has_failed_nevertheless(start_server: StartServer) -> None:
    server = tubes(start_server, jobs=("fifo", {}))

    async def main() -> None:
        async def handle(task: Task) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return

        async with Queue(server.address, tube="jobs", sleep=briefly) as queue:
            await queue.put("a")
            worker = asyncio.create_task(queue.work(handle, time_limit=600, max_failures=1))
            await asyncio.to_thread(_wait_for_buried, server.address)
            await queue.stop()
            await worker

    run(main)


def test_a_handler_that_goes_on_for_ever_ends_the_worker(
    start_server: StartServer, caplog: pytest.LogCaptureFixture
) -> None:
    server = tubes(start_server, jobs=("fifo", {}))
    cancellations = 0

    async def main() -> None:
        is_over = asyncio.Event()

        async def handle(task: Task) -> None:
            nonlocal cancellations
            while not is_over.is_set():
                try:
                    await is_over.wait()
                except asyncio.CancelledError:
                    cancellations += 1

        queue = Queue(server.address, tube="jobs", sleep=briefly)
        await queue.put("a")
        with pytest.raises(HandlerStuck, match="goes on after 4 cancellations"):
            await queue.work(handle, time_limit=600)
        assert stored(server.address, "jobs") == {"ready": 1}
        is_over.set()

    run(main)
    assert cancellations == len(CANCELLATIONS)
    assert "goes on after 4 cancellations" in caplog.text


def test_a_worker_that_other_code_cancels_says_so(start_server: StartServer) -> None:
    server = tubes(start_server, jobs=("fifo", {}))

    async def main() -> None:
        is_handled = asyncio.Event()

        async def handle(task: Task) -> None:
            is_handled.set()

        queue = Queue(server.address, tube="jobs")
        worker = asyncio.create_task(queue.work(handle, concurrency=2))
        await queue.put("a")
        await is_handled.wait()
        next(iter(queue._workers)).cancel()
        with pytest.raises(QueueError, match="cancelled by other code"):
            await worker

    run(main)


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_callers_hear_of_a_take_that_ends(is_cancelled: bool) -> None:
    class Source:
        async def link_again(self) -> Any:
            if is_cancelled:
                raise asyncio.CancelledError
            raise ArithmeticError("of a callback")

    async def main() -> None:
        consumer = Consumer(
            Source(),
            Care(FailurePolicy(AT_ONCE), asyncio.sleep),
            concurrency=1,
            prefetch=0,
            poll=1,
            ttr=None,
            closed=lambda consumer: None,
        )
        with pytest.raises(QueueError if is_cancelled else ArithmeticError):
            await anext(consumer)

    run(main)


def test_tracing_that_fails_fails_no_task(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = tubes(start_server, jobs=("fifo", {}))

    def extract(data: object) -> None:
        raise TypeError("expected string")

    async def main() -> None:
        async with Queue(server.address, tube="jobs", propagate=True) as queue:
            await queue.put("no dict")
            monkeypatch.setattr(tracing, "trace", SimpleNamespace())
            monkeypatch.setattr(tracing, "propagate", SimpleNamespace(extract=extract))
            task = await queue.take(1)
            assert task is not None
            async with task:
                pass
        assert stored(server.address, "jobs") == {}

    run(main)
    assert "no span for the task 0" in caplog.text


@pytest.mark.parametrize("wrong", [0, -1, float("nan")])
def test_wrong_times_are_refused(wrong: float) -> None:
    async def main() -> None:
        async def handle(task: Task) -> None:
            """Never called."""

        queue = Queue("127.0.0.1:1", tube="jobs")
        with pytest.raises(ValueError, match="time_limit is more than 0 seconds, or None for no limit, not"):
            await queue.work(handle, time_limit=wrong)
        if wrong:
            with pytest.raises(ValueError, match="stop: the time is at least 0 seconds, not"):
                await queue.stop(wrong)

    run(main)


@pytest.mark.parametrize("ends", [KeyboardInterrupt, SystemExit])
def test_the_end_of_the_process_gives_the_task_back(
    start_server: StartServer, ends: type[BaseException]
) -> None:
    server = tubes(start_server, jobs=("fifo", {}))

    async def main() -> None:
        async def handle(task: Task) -> None:
            raise ends

        queue = Queue(server.address, tube="jobs")
        await queue.put("a")
        await queue.work(handle)

    with pytest.raises(ends):
        asyncio.run(main())
    wait_until(lambda: stored(server.address, "jobs") == {"ready": 1})
