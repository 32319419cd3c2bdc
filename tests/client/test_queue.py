"""Putting, taking and finishing tasks, with our servers and a real Tarantool."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from iproto_server.client import NotConnected, Queue, QueueError, Refused, TaskLost, Unsupported
from tests.client.support import (
    call,
    counts,
    run,
    tube_states,
    tubes,
    tutorial,
)
from tests.conftest import StartServer, StartTarantool
from tests.queue_lua_compat.real_tubes import tubes_application
from tests.running_server import QUEUE_APPLICATION, RunningServer

LOADED = """
import sys
{}
print(*sorted(name for name in sys.modules if name.startswith({!r})))
"""


def loaded(statement: str, prefix: str | tuple[str, ...]) -> list[str]:
    """Return the modules that a statement loads into a new process."""
    code = LOADED.format(statement, prefix)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_client_loads_no_server_and_the_server_no_client() -> None:
    server = ("iproto_server.server", "iproto_server.box", "iproto_server.storage", "uvloop", "opentelemetry")
    assert loaded("import iproto_server.client, iproto_server.client.sync", server) == []
    assert loaded("import iproto_server.server.process", ("iproto_server.client", "asynctnt")) == []


def test_the_tutorials_queue(start_server: StartServer) -> None:
    server = tutorial(start_server)

    async def main() -> None:
        async with Queue(server.address, "tutorial") as queue:
            first = await queue.put({"to": "ann"})
            await queue.put("later", delay=600)
            assert counts(server.address) == (1, 1, 0)
            task = await queue.take()
            assert task is not None
            assert (task.id, task.data, await queue.take()) == (first, {"to": "ann"}, None)
            await task.release(delay=600)
            assert counts(server.address) == (0, 2, 0)
            with pytest.raises(Refused, match="not taken by anybody"):
                await task.ack()
            with pytest.raises(Unsupported):
                await task.bury()

    run(main)


async def use_a_tube(address: str) -> None:
    """Everything that a tube with times can do."""
    async with Queue(address, tube="jobs") as queue:
        assert await queue.put("low", pri=2) == 0
        await queue.put("high", pri=1, ttr=100)
        task = await queue.take(1)
        assert task is not None
        assert task.data == "high"
        await task.touch(5)
        await task.release(delay=600)
        task = await queue.take(1)
        assert task is not None
        await task.bury()
        assert tube_states(address, "jobs") == {"delayed": 1, "buried": 1}
        assert call(address, "queue.tube.jobs:kick", 1) == 1
        async for task in queue.consume():
            async with task:
                assert task.data == "low"
            break
        assert tube_states(address, "jobs") == {"delayed": 1, "done": 1}
        with pytest.raises(ValueError, match=r"tube jobs \(fifottl\) has no option 'utube'"):
            await queue.put("wrong", utube="a")
        with pytest.raises(ValueError, match="touch: the time"):
            await task.touch(0)
        with pytest.raises(ValueError, match="release: the delay"):
            await task.release(-1)
        with pytest.raises(ValueError, match="take: the timeout"):
            await queue.take(-1)
    async with Queue(address, tube="wrong") as queue:
        with pytest.raises(QueueError, match="there is no tube 'wrong'"):
            await queue.put("a")


def test_a_tube(start_server: StartServer) -> None:
    server = tubes(start_server, jobs=("fifottl", {"ttr": 60}))
    run(lambda: use_a_tube(server.address))


@pytest.mark.real_tarantool
def test_a_tube_of_a_real_tarantool(real_tarantool: StartTarantool) -> None:
    server = real_tarantool(
        tubes_application() + "\nqueue.create_tube('jobs', 'fifottl', {ttr = 60, if_not_exists = true})"
    )
    run(lambda: use_a_tube(server.address))


def test_a_server_without_tubes_is_named(start_server: StartServer) -> None:
    server = tutorial(start_server)

    async def main() -> None:
        async with Queue(server.address, tube="jobs") as queue:
            with pytest.raises(QueueError, match="user guest sees no space _queue"):
                await queue.connect()

    run(main)


def test_a_wrong_login_and_a_wrong_address_are_refused(start_server: StartServer, tmp_path: Path) -> None:
    server = tutorial(start_server)

    async def main() -> None:
        async with Queue(server.address, "tutorial", user="nobody", password="wrong") as queue:
            with pytest.raises(Refused, match="User not found or supplied credentials are invalid"):
                await queue.connect()
        async with Queue(f"unix:{tmp_path}/nowhere", "tutorial") as queue:
            with pytest.raises(NotConnected, match=r"cannot connect to unix:.*nowhere") as error:
                await queue.put("a")
            assert not error.value.may_have_been_done
            with pytest.raises(NotConnected):
                await anext(queue.consume())
        with pytest.raises(NotConnected, match="the queue was closed"):
            await queue.put("a")

    run(main)


def test_a_user_without_rights_is_refused(start_server: StartServer) -> None:
    server = tutorial(start_server)
    call(server.address, "box.schema.user.create", "ann", {"password": "secret"})

    async def main() -> None:
        async with Queue(server.address, "tutorial", user="ann", password="secret") as queue:
            with pytest.raises(Refused, match=r"queue\.put.* is denied for user 'ann'") as error:
                await queue.put("a")
            assert error.value.code == 42
            with pytest.raises(Refused, match=r"queue\.take.* is denied"):
                await anext(queue.consume())

    run(main)


def test_a_unix_socket(start_server: StartServer, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    server = start_server([QUEUE_APPLICATION], ["--listen", f"unix:{path}"])
    server.process.wait_for("listening on unix:")

    async def main() -> None:
        async with Queue(f"unix:{path}", "tutorial") as queue:
            await queue.put("a")
            task = await queue.take()
            assert task is not None
            assert task.data == "a"

    run(main)


def test_a_put_tells_whether_it_may_have_been_done(tmp_path: Path) -> None:
    server = RunningServer(tmp_path, [QUEUE_APPLICATION])

    async def main() -> None:
        async with Queue(server.address, "tutorial") as queue:
            await queue.put("a")
            task = await queue.take()
            assert task is not None
            os.kill(server.process.pid, signal.SIGSTOP)
            put = asyncio.create_task(queue.put("b"))
            await asyncio.sleep(0)  # the request is written in the first step
            await asyncio.sleep(0)
            os.kill(server.process.pid, signal.SIGKILL)
            with pytest.raises(NotConnected) as error:
                await put
            assert error.value.may_have_been_done
            with pytest.raises(NotConnected, match="cannot connect") as error:
                await queue.put("c")
            assert not error.value.may_have_been_done
            assert task.is_lost
            with pytest.raises(TaskLost):
                await task.ack()

    try:
        run(main)
    finally:
        server.kill()


def test_a_server_that_does_not_respond_is_given_up(tmp_path: Path) -> None:
    server = RunningServer(tmp_path, [QUEUE_APPLICATION])

    async def main() -> None:
        async with Queue(server.address, "tutorial", request_timeout=0.05) as queue:
            await queue.connect()
            os.kill(server.process.pid, signal.SIGSTOP)
            with pytest.raises(NotConnected, match="did not respond in time") as error:
                await queue.put("b")
            assert error.value.may_have_been_done

    try:
        run(main)
    finally:
        server.kill()
