"""The queue for plain scripts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from pathlib import Path

import pytest

from iproto_server.client import Backoff, NotConnected, QueueError, Refused, TaskLost, Unsupported
from iproto_server.client.alarm import Alarm
from iproto_server.client.sync import Queue
from tests.client.support import EXACT, call, counts, tube_states, tubes, tutorial
from tests.conftest import StartServer, StartTarantool
from tests.queue_lua_compat.real_tubes import tubes_application
from tests.running_server import QUEUE_APPLICATION, RunningServer


def test_the_tutorials_queue(start_server: StartServer) -> None:
    server = tutorial(start_server)
    with Queue(server.address, "tutorial") as queue:
        first = queue.put({"to": "ann"})
        queue.put("later", delay=600)
        task = queue.take()
        assert task is not None
        assert (task.id, task.data, queue.take()) == (first, {"to": "ann"}, None)
        task.release(delay=600)
        assert counts(server.address) == (0, 2, 0)
        with pytest.raises(Refused, match="not taken by anybody"):
            task.ack()
        with pytest.raises(Unsupported):
            task.bury()


def use_a_tube(address: str) -> None:
    """Everything that a tube with times can do."""
    with Queue(address, tube="jobs") as queue:
        queue.put("low", pri=2)
        queue.put("high", pri=1, ttr=100)
        task = queue.take(1)
        assert task is not None
        assert task.data == "high"
        task.touch(5)
        task.bury()
        for task in queue.consume(timeout=0):
            with task:
                assert task.data == "low"
        assert tube_states(address, "jobs") == {"buried": 1, "done": 1}
        with pytest.raises(ValueError, match="has no option 'utube'"):
            queue.put("wrong", utube="a")
        for wrong in (task.touch, task.release, queue.take):
            with pytest.raises(ValueError, match=r"than|least"):
                wrong(-1)
    with Queue(address, tube="wrong") as queue, pytest.raises(QueueError, match="there is no tube 'wrong'"):
        queue.put("a")


def test_a_tube(start_server: StartServer) -> None:
    server = tubes(start_server, jobs=("fifottl", {"ttr": 60}))
    use_a_tube(server.address)


@pytest.mark.real_tarantool
def test_a_tube_of_a_real_tarantool(real_tarantool: StartTarantool) -> None:
    create = "queue.create_tube('jobs', 'fifottl', {ttr = 60, if_not_exists = true})"
    server = real_tarantool(f"{tubes_application()}\n{create} -- for the client of scripts")
    use_a_tube(server.address)


def test_failures_are_released_with_a_growing_delay_and_buried_at_last(
    start_server: StartServer, caplog: pytest.LogCaptureFixture
) -> None:
    server = tubes(start_server, jobs=("fifo", {}), timed=("fifottl", {}))
    slept: list[float] = []
    with Queue(server.address, tube="jobs", backoff=EXACT, sleep=slept.append) as queue:
        queue.put("a")
        for task in queue.consume(timeout=0, max_failures=3):
            with task:
                raise RuntimeError("it went wrong")
    assert slept == [1.0, 2.0]
    assert tube_states(server.address, "jobs") == {"buried": 1}
    assert "it went wrong" in caplog.text
    with Queue(server.address, tube="timed", backoff=Backoff(first=600, longest=600)) as queue:
        queue.put("a")
        for task in queue.consume(timeout=0):
            with task:
                raise RuntimeError("it went wrong")
    assert tube_states(server.address, "timed") == {"delayed": 1}


def test_an_interrupt_gives_the_task_back_and_goes_on(start_server: StartServer) -> None:
    server = tutorial(start_server)
    with Queue(server.address, "tutorial") as queue:
        queue.put("a")
        with pytest.raises(KeyboardInterrupt):
            for task in queue.consume():
                with task:
                    raise KeyboardInterrupt
        assert counts(server.address) == (1, 0, 0)


def test_a_cancelled_error_is_a_failure(start_server: StartServer) -> None:
    server = tubes(start_server, jobs=("fifo", {}))

    async def cancelled() -> None:
        other = asyncio.ensure_future(asyncio.sleep(0))
        other.cancel()
        await other

    with Queue(server.address, tube="jobs", backoff=Backoff(first=0)) as queue:
        queue.put("a")
        for task in queue.consume(timeout=0, max_failures=2):
            with task:
                asyncio.run(cancelled())
    assert tube_states(server.address, "jobs") == {"buried": 1}


def test_a_time_limit_interrupts_a_block(start_server: StartServer, caplog: pytest.LogCaptureFixture) -> None:
    server = tubes(start_server, jobs=("fifo", {}))
    before = signal.getsignal(signal.SIGALRM)
    swallowed = 0
    with Queue(server.address, tube="jobs", backoff=Backoff(first=0)) as queue:
        queue.put("hangs")
        for task in queue.consume(timeout=0, max_failures=1, time_limit=0.01):
            with task:
                while True:
                    try:
                        threading.Event().wait()
                    except TimeoutError:
                        swallowed += 1
                        if swallowed == 2:  # it is raised again
                            raise
    assert swallowed == 2
    assert tube_states(server.address, "jobs") == {"buried": 1}
    assert "the block took longer than its time limit of 0.01 s" in caplog.text
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_a_block_that_swallows_the_end_of_its_time_has_failed(start_server: StartServer) -> None:
    server = tubes(start_server, jobs=("fifo", {}))
    with Queue(server.address, tube="jobs") as queue:
        queue.put("a")
        for task in queue.consume(timeout=0, max_failures=1, time_limit=0.01):
            with task, contextlib.suppress(TimeoutError):
                threading.Event().wait()
    assert tube_states(server.address, "jobs") == {"buried": 1}


def test_nothing_is_raised_around_the_block() -> None:
    def around() -> bool:
        signal.raise_signal(signal.SIGALRM)
        return alarm.end()

    alarm = Alarm(600, around)
    assert around()
    assert isinstance(alarm.error, TimeoutError)


def test_a_time_limit_needs_the_main_thread() -> None:
    queue = Queue("127.0.0.1:1", "tutorial")
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="time_limit is more than 0 seconds"):
            queue.consume(time_limit=wrong)
    errors: list[ValueError] = []

    def consume() -> None:
        try:
            queue.consume(time_limit=1)
        except ValueError as error:
            errors.append(error)

    thread = threading.Thread(target=consume)
    thread.start()
    thread.join()
    assert [str(error) for error in errors] == ["time_limit: only the main thread can be interrupted"]


def test_an_interrupted_request_closes_the_connection(start_server: StartServer) -> None:
    server = tutorial(start_server)

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with Queue(server.address, "tutorial") as queue:
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                queue.take(30)
            # The response of that take must not be taken for the one of this put.
            assert isinstance(queue.put("a"), int)
            task = queue.take()
            assert task is not None
            assert task.data == "a"
            task.ack()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert counts(server.address) == (0, 0, 0)


def test_a_lost_connection_is_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    servers = [RunningServer(tmp_path, [QUEUE_APPLICATION])]

    def restart(seconds: float) -> None:
        if len(servers) == 1:
            servers.append(RunningServer(tmp_path, [QUEUE_APPLICATION], listen=servers[0].address))

    try:
        with Queue(servers[0].address, "tutorial", reconnect=EXACT, sleep=restart) as queue:
            queue.put("a")
            done: list[object] = []
            for task in queue.consume(timeout=0):
                with task:
                    if not done:
                        servers[0].kill()
                    done.append(task.data)
            assert done == ["a", "a"]
        assert counts(servers[1].address) == (0, 0, 0)
        servers[1].stop()
    finally:
        for server in servers:
            server.kill()
    assert "was done, but may be done again" in caplog.text
    assert "next attempt in 1 s" in caplog.text


def test_a_put_tells_whether_it_may_have_been_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = RunningServer(tmp_path, [QUEUE_APPLICATION])
    try:
        with Queue(server.address, "tutorial") as queue:
            queue.put("a")
            task = queue.take()
            assert task is not None
            os.kill(server.process.pid, signal.SIGSTOP)
            assert queue._link is not None
            connection = queue._link._connection
            send = connection._sendall

            def send_and_kill(request: bytes) -> None:
                send(request)
                server.kill()

            monkeypatch.setattr(connection, "_sendall", send_and_kill)
            with pytest.raises(NotConnected, match="was lost") as error:
                queue.put("b")
            assert error.value.may_have_been_done
            with pytest.raises(TaskLost):
                task.ack()
            with pytest.raises(NotConnected, match="cannot connect") as error:
                queue.put("c")
            assert not error.value.may_have_been_done
    finally:
        server.kill()


def test_wrong_logins_addresses_and_rights_are_refused(start_server: StartServer, tmp_path: Path) -> None:
    server = tutorial(start_server)
    call(server.address, "box.schema.user.create", "ann", {"password": "secret"})
    with (
        Queue(server.address, "tutorial", user="nobody", password="wrong") as queue,
        pytest.raises(Refused, match="User not found or supplied credentials are invalid"),
    ):
        queue.put("a")
    with Queue(f"unix:{tmp_path}/nowhere", "tutorial") as queue, pytest.raises(NotConnected, match="nowhere"):
        queue.put("a")
    with Queue(server.address, tube="jobs") as queue, pytest.raises(QueueError, match="sees no space _queue"):
        queue.put("a")
    with Queue(server.address, "tutorial", user="ann", password="secret") as queue:
        with pytest.raises(Refused, match=r"queue\.put.* is denied for user 'ann'"):
            queue.put("a")
        with pytest.raises(Refused, match="is denied"):
            next(queue.consume())
    with pytest.raises(NotConnected, match="was closed"):
        queue.put("a")


def test_wrong_numbers_are_refused() -> None:
    queue = Queue("127.0.0.1:1", "tutorial")
    with pytest.raises(ValueError, match="timeout"):
        queue.consume(timeout=-1)
    with pytest.raises(ValueError, match="max_failures"):
        queue.consume(max_failures=0)
