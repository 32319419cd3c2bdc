"""What follows failed attempts, as the queue and its workers count them."""

from __future__ import annotations

import asyncio
import logging

import pytest

from iproto_server.client import Backoff, Queue, Task
from tests.client.buried import AT_ONCE, _wait_for_buried, stored
from tests.client.support import (
    Sleeps,
    call,
    run,
    tubes,
)
from tests.conftest import StartServer, StartTarantool
from tests.queue_lua_compat.real_tubes import tubes_application

RETRY = {"retry": {"delay": 2, "factor": 1, "jitter": 0}}


@pytest.mark.parametrize("dialect", ["tube", "tutorial"])
def test_the_queues_retry_counts_and_the_log_says_what_follows(
    start_server: StartServer, caplog: pytest.LogCaptureFixture, dialect: str
) -> None:
    limits = {**RETRY, "release_limit": 2, "release_limit_policy": "DLQ"}
    if dialect == "tube":
        server = tubes(start_server, jobs=("fifottl", limits))
        name, options = "jobs", {"tube": "jobs"}
    else:
        server = start_server(["queue_lua_compat.tutorial:app"])
        call(server.address, "operator.configure", "queue", limits)
        name, options = "queue", {"dialect": "tutorial"}

    async def main() -> None:
        async with Queue(server.address, backoff=Backoff(first=0.5, jitter=0), **options) as queue:  # type: ignore[arg-type]
            await queue.put("a")
            async for task in queue.consume():
                async with task:
                    raise OSError("it went wrong")
                break
            [waiting] = call(server.address, "operator.tasks", name, {})
            assert waiting["state"] == "delayed"
            call(server.address, "operator.release", name, waiting["id"])
            task_again = await queue.take(5)
            assert task_again is not None
            async with task_again:
                raise OSError("it went wrong")
        assert call(server.address, "operator.tasks", name, {}) == []
        assert len(call(server.address, "operator.tasks", f"{name}_dlq", {})) == 1

    run(main)
    failures = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert [failure.partition("failed ")[2] for failure in failures] == [
        "(1), next try in 2 s",
        "for the last time (2) and is a dead letter",
    ]


def test_the_server_counts_failures_for_all_workers(
    start_server: StartServer, caplog: pytest.LogCaptureFixture
) -> None:
    server = tubes(start_server, jobs=("fifottl", {}))

    async def main() -> None:
        for number in range(3):  # each with a memory of its own
            async with Queue(server.address, tube="jobs", backoff=AT_ONCE) as queue:
                if number == 0:
                    await queue.put("a")
                async for task in queue.consume(max_failures=3):
                    async with task:
                        raise OSError("it went wrong")
                    break
        assert stored(server.address, "jobs") == {"buried": 1}
        assert call(server.address, "queue.tube.jobs:kick", 1) == 1
        [kicked] = call(server.address, "operator.tasks", "jobs", {})
        assert kicked["details"]["releases"] == 0

    run(main)
    assert "failed for the last time (3) and is buried" in caplog.text


def test_a_new_task_with_the_id_of_a_dead_letter_has_all_its_attempts(start_server: StartServer) -> None:
    limits = {"release_limit": 2, "release_limit_policy": "DLQ"}
    server = tubes(start_server, jobs=("fifottl", limits))

    async def main() -> None:
        handled: list[object] = []

        async def handle(task: Task) -> None:
            handled.append((task.id, task.data))
            if len(handled) == 2:
                await queue.put("same")
            if len(handled) == 4:
                await queue.stop()
            raise OSError("it went wrong")

        queue = Queue(server.address, tube="jobs", backoff=AT_ONCE)
        await queue.put("same")
        await queue.work(handle, max_failures=3)
        assert handled == [(0, "same")] * 2 + [handled[2]] * 2
        assert len(call(server.address, "operator.tasks", "jobs_dlq", {})) == 2
        assert stored(server.address, "jobs") == {}

    run(main)


@pytest.mark.real_tarantool
def test_a_real_tarantool_ignores_reports_and_the_worker_counts(
    real_tarantool: StartTarantool, caplog: pytest.LogCaptureFixture
) -> None:
    server = real_tarantool(
        f"{tubes_application()}\nqueue.create_tube('jobs', 'fifottl', {{ttr = 60, if_not_exists = true}})"
    )

    async def main() -> None:
        sleeps = Sleeps()
        attempts = 0

        async def handle(task: Task) -> None:
            nonlocal attempts
            attempts += 1
            if attempts == 1:
                assert await sleeps.next() == 20  # a touch, whose third argument the module ignores
            raise OSError("it went wrong")

        queue = Queue(server.address, tube="jobs", backoff=AT_ONCE, sleep=sleeps)
        await queue.put("a")
        worker = asyncio.create_task(queue.work(handle, max_failures=2))
        await asyncio.to_thread(_wait_for_buried, server.address)
        await queue.stop()
        await worker

    run(main)
    failures = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert failures == [
        "task 0 failed (1), next try in 0 s",
        "task 0 failed for the last time (2) and is buried",
    ]
