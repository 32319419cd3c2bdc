"""Workers: success, failure, touching, lost connections, prefetching and stopping."""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from iproto_server.client import Backoff, Queue, Refused, Task
from tests.client.support import (
    EXACT,
    TIMEOUT,
    Sleeps,
    briefly,
    call,
    counts,
    run,
    tube_states,
    tubes,
    tutorial,
    wait_for_counts,
    wait_until,
)
from tests.conftest import StartServer
from tests.programs import REPOSITORY
from tests.running_server import QUEUE_APPLICATION, RunningServer


@asynccontextmanager
async def filled_queue(address: str, tasks: int) -> AsyncIterator[Queue]:
    """The tutorial's queue with tasks whose data are numbers."""
    async with Queue(address, "tutorial") as queue:
        for number in range(tasks):
            await queue.put(number)
        yield queue


def test_handlers_run_side_by_side_and_acknowledge(start_server: StartServer) -> None:
    server = tutorial(start_server)

    async def main() -> None:
        both = asyncio.Barrier(2)
        done: list[object] = []

        async def handle(task: Task) -> None:
            await both.wait()
            done.append(task.data)
            if len(done) == 4:
                stop.append(asyncio.create_task(queue.stop()))

        stop: list[asyncio.Task[None]] = []
        async with filled_queue(server.address, 4) as queue:
            await queue.work(handle, concurrency=2)
            await stop[0]
        assert sorted(map(str, done)) == ["0", "1", "2", "3"]
        assert counts(server.address) == (0, 0, 0)

    run(main)


def test_no_more_tasks_are_taken_than_handlers_are_free(start_server: StartServer) -> None:
    server = tutorial(start_server)

    async def main() -> None:
        async with filled_queue(server.address, 5) as queue, queue.consume() as consumer:
            async with await anext(consumer):
                assert counts(server.address) == (4, 0, 1)
            assert counts(server.address) == (4, 0, 0)

    run(main)


def test_prefetched_tasks_are_released_at_a_stop(start_server: StartServer) -> None:
    server = tutorial(start_server)

    async def main() -> None:
        async with filled_queue(server.address, 5) as queue:
            consumer = queue.consume(prefetch=2)
            async with await anext(consumer):
                await asyncio.to_thread(wait_for_counts, server.address, (2, 0, 3))
                stop = asyncio.create_task(queue.stop())
                await asyncio.to_thread(wait_for_counts, server.address, (4, 0, 1))
            await stop
            with pytest.raises(StopAsyncIteration):
                await anext(consumer)
            with pytest.raises(StopAsyncIteration):
                await anext(consumer)
        assert counts(server.address) == (4, 0, 0)

    run(main)


def test_a_failed_task_is_released_with_a_growing_delay(
    start_server: StartServer, caplog: pytest.LogCaptureFixture
) -> None:
    server = tutorial(start_server)
    backoff = Backoff(first=0.001, factor=100, longest=600, jitter=0)

    async def main() -> None:
        async with Queue(server.address, "tutorial", backoff=backoff) as queue:
            await queue.put("a")
            attempts = 0
            async for task in queue.consume():
                attempts += 1
                async with task:
                    raise RuntimeError("it went wrong")
                if attempts == 3:
                    break
        assert counts(server.address) == (0, 1, 0)

    run(main)
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    failures = [warning.partition(" ")[2].partition(" ")[2] for warning in warnings]
    delays = ((1, "0.001"), (2, "0.1"), (3, "10"))
    assert failures == [f"failed ({count}), next try in {delay} s" for count, delay in delays]
    assert "it went wrong" in caplog.text


def test_without_delayed_release_the_worker_waits_and_buries_at_last(
    start_server: StartServer, caplog: pytest.LogCaptureFixture
) -> None:
    server = tubes(start_server, jobs=("fifo", {}))
    caplog.set_level(logging.INFO, "iproto_server.client")

    async def main() -> None:
        sleeps = Sleeps()

        async def handle(task: Task) -> None:
            raise RuntimeError("it went wrong")

        async with Queue(server.address, tube="jobs", backoff=EXACT, sleep=sleeps) as queue:
            await queue.put("a")
            worker = asyncio.create_task(queue.work(handle, max_failures=3))
            assert [await sleeps.next(), await sleeps.next()] == [1.0, 2.0]
            await asyncio.to_thread(wait_until, lambda: tube_states(server.address, "jobs") == {"buried": 1})
            await queue.stop()
            await worker

    run(main)
    assert "tube jobs (fifo): it cannot delay released tasks" in caplog.text
    assert "failed for the last time (3) and is buried" in caplog.text


def test_a_stop_ends_the_wait_before_a_release(start_server: StartServer) -> None:
    server = tubes(start_server, jobs=("fifo", {}))

    async def main() -> None:
        sleeps = Sleeps()

        async def handle(task: Task) -> None:
            raise RuntimeError("it went wrong")

        async with Queue(server.address, tube="jobs", backoff=EXACT, sleep=sleeps) as queue:
            await queue.put("a")
            worker = asyncio.create_task(queue.work(handle))
            assert await sleeps.asked() == 1.0
            await queue.stop()
            await worker
        assert tube_states(server.address, "jobs") == {"ready": 1}

    run(main)


def test_a_task_with_ttr_is_touched_at_each_third(start_server: StartServer) -> None:
    server = tubes(start_server, jobs=("fifottl", {"ttr": 60}))

    async def main() -> None:
        sleeps = Sleeps()
        async with Queue(server.address, tube="jobs", sleep=sleeps) as queue:
            await queue.put("a")
            async with queue.consume() as consumer, await anext(consumer):
                assert [await sleeps.next(), await sleeps.next(), await sleeps.asked()] == [20.0] * 3
                assert call(server.address, "queue.statistics", "jobs")["calls"]["touch"] == 2
            await queue.put("b", ttr=30)
            async with queue.consume(ttr=30) as consumer, await anext(consumer):
                assert await sleeps.asked() == 10.0

    run(main)


def test_a_cancelled_handler_gives_its_task_back(start_server: StartServer) -> None:
    server = tutorial(start_server)

    async def main() -> None:
        started = asyncio.Event()

        async def handle(task: Task) -> None:
            started.set()
            await asyncio.Event().wait()

        async with Queue(server.address, "tutorial") as queue:
            await queue.put("a")
            worker = asyncio.create_task(queue.work(handle))
            await started.wait()
            await queue.stop(0.01)  # the handler does not finish by itself
            await worker
        assert counts(server.address) == (1, 0, 0)

    run(main)


def test_a_worker_survives_a_killed_server(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = RunningServer(tmp_path, [QUEUE_APPLICATION])

    def restart() -> RunningServer:
        wait_until(lambda: "next attempt in" in caplog.text)
        return RunningServer(tmp_path, [QUEUE_APPLICATION], listen=first.address)

    async def main() -> None:
        done: asyncio.Queue[object] = asyncio.Queue()
        is_killed = asyncio.Event()

        async def handle(task: Task) -> None:
            if done.empty() and not is_killed.is_set():
                done.put_nowait("started")
                await is_killed.wait()
            done.put_nowait(task.data)

        async with Queue(first.address, "tutorial", reconnect=EXACT, sleep=briefly) as queue:
            await queue.put("a")
            worker = asyncio.create_task(queue.work(handle))
            assert await done.get() == "started"
            first.kill()
            is_killed.set()
            assert await done.get() == "a"
            with RunningServer(tmp_path, [QUEUE_APPLICATION], listen=first.address) as second:
                assert await done.get() == "a"  # done again
                await asyncio.to_thread(wait_for_counts, second.address, (0, 0, 0))
                await queue.stop()
                await worker

    try:
        run(main)
    finally:
        first.kill()
    assert "was done, but may be done again" in caplog.text


def test_prefetched_tasks_of_a_lost_connection_are_forgotten(start_server: StartServer) -> None:
    server = tutorial(start_server)

    async def main() -> None:
        async with Queue(server.address, "tutorial", sleep=briefly) as queue:
            for number in range(3):
                await queue.put(number)
            consumer = queue.consume(prefetch=2)
            first = await anext(consumer)
            await asyncio.to_thread(wait_for_counts, server.address, (0, 0, 3))
            assert queue._link is not None
            queue._link.close()
            tasks = [await anext(consumer) for _ in range(3)]
            assert first.is_lost
            assert not any(task.is_lost for task in tasks)
            assert sorted(task.data for task in tasks) == [0, 1, 2]

    run(main)


def test_a_caller_that_gives_up_takes_no_task(start_server: StartServer) -> None:
    server = tutorial(start_server)

    async def main() -> None:
        async with Queue(server.address, "tutorial") as queue, queue.consume() as consumer:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(consumer), 0.01)
            await queue.put("a")
            await queue.put("b")
            first = await anext(consumer)
            assert (first.data, counts(server.address)) == ("a", (1, 0, 1))

    run(main)


def test_a_consumer_that_ended_is_forgotten_and_an_error_ends_it(start_server: StartServer) -> None:
    server = tutorial(start_server)
    call(server.address, "box.schema.user.create", "ann", {"password": "secret"})

    async def main() -> None:
        async with Queue(server.address, "tutorial") as queue:
            await queue.put("a")
            async with queue.consume() as consumer, await anext(consumer):
                assert queue._consumers == {consumer}
            await asyncio.to_thread(wait_until, lambda: not queue._consumers)
        async with (
            Queue(server.address, "tutorial", user="ann", password="secret") as queue,
            queue.consume(concurrency=2) as consumer,
        ):
            for _ in range(3):
                with pytest.raises(Refused, match="denied"):
                    await anext(consumer)

    run(main)


def test_a_task_that_was_finished_by_hand_is_left_alone(start_server: StartServer) -> None:
    server = tutorial(start_server)

    async def main() -> None:
        async with Queue(server.address, "tutorial") as queue:
            await queue.put("a")
            async with queue.consume() as consumer:
                task = await anext(consumer)
                async with task:
                    await task.ack()
                    raise RuntimeError("too late")
        assert counts(server.address) == (0, 0, 0)

    run(main)


@pytest.mark.parametrize(
    "wrong",
    [{"concurrency": 0}, {"prefetch": -1}, {"max_failures": 0}, {"poll": 0}, {"ttr": 0}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_wrong_numbers_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Queue("127.0.0.1:1", "tutorial").consume(**wrong)


def test_a_handler_must_be_a_coroutine_function() -> None:
    with pytest.raises(TypeError, match="coroutine function"):
        asyncio.run(Queue("127.0.0.1:1", "tutorial").work(print))  # type: ignore[arg-type]


WORKER = """
import asyncio, signal, sys
from iproto_server.client import Queue

async def handle(task):
    print("begins", task.data, flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    print("ends", task.data, flush=True)

async def main():
    queue = Queue(sys.argv[1], "tutorial")
    await queue.work(handle, prefetch=1, stop_signals=(signal.SIGTERM,))
    print("stopped", flush=True)

asyncio.run(main())
"""


def test_sigterm_lets_a_handler_finish_and_releases_the_others(start_server: StartServer) -> None:
    server = tutorial(start_server)
    for number in range(3):
        call(server.address, "queue.put", number)
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, server.address],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stdout.readline() == "begins 0\n"
        wait_for_counts(server.address, (1, 0, 2))
        worker.send_signal(signal.SIGTERM)
        wait_for_counts(server.address, (2, 0, 1))
        written, _ = worker.communicate("go on\n", timeout=TIMEOUT)
        assert (worker.returncode, written) == (0, "ends 0\nstopped\n")
    assert counts(server.address) == (2, 0, 0)
