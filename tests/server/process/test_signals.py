"""Signals: snapshots, one deadline for a stop, and an end when the stop has none."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest

from iproto_server import Application, Box
from iproto_server.protocol.constants import Key, RequestType
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.programs import REPOSITORY
from tests.running_server import RunningServer
from tests.server.application import app as plain_application
from tests.server.conftest import APPLICATION
from tests.server.in_process import ServerInProcess

CALL = RequestType.CALL
SIGNALS = "tests.server.process.signals_application:app"
PATIENCE = 60.0
"""Seconds that a process has to end on a machine that is busy with other things."""

SIGNAL_EVERY = 0.25


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., RunningServer]]:
    """Starts servers in one directory that may end in any way."""
    servers: list[RunningServer] = []

    def start(*options: str, application: str = SIGNALS) -> RunningServer:
        servers.append(RunningServer(tmp_path, [application], options))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.running:
            server.kill()


def send_call(client: IprotoClient, name: str, *arguments: object) -> int:
    return client.send(CALL, {Key.FUNCTION_NAME: name, Key.TUPLE: list(arguments)})


def signal_until_it_ends(server: RunningServer, number: signal.Signals) -> int:
    """Send a signal again and again, because two that come together are one; answer the exit status."""
    for _ in range(int(PATIENCE / SIGNAL_EVERY)):
        server.process.signal(number)
        with suppress(subprocess.TimeoutExpired):
            return server.process.wait(timeout=SIGNAL_EVERY)
    raise AssertionError(f"it does not end; it wrote:\n{server.process.output}")


async def already_stopped() -> None:
    """In the place of a second stop."""


def snapshots(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("*.snap"))


def numbered(lsn: int) -> str:
    return f"{lsn:020d}.snap"


class TestASnapshotOnSigusr1:
    @pytest.mark.parametrize("options", [(), ("--wal-mode", "none"), ("--wal-mode", "fsync")])
    def test_is_taken_and_the_server_goes_on(
        self, start_server: StartServer, tmp_path: Path, options: tuple[str, ...]
    ) -> None:
        server = start_server([SIGNALS], options, work_dir=tmp_path)
        with IprotoClient.at(server.address) as client:
            client.call("put", 1)
            lsn = client.call("box.info").data[0]["lsn"]
            server.process.signal(signal.SIGUSR1)
            server.process.wait_for("done, .* rows in")
            assert client.call("put", 2).ok
        assert "taking a snapshot on SIGUSR1" in server.process.output
        assert snapshots(tmp_path) == [numbered(0), numbered(lsn)]

    def test_is_taken_of_a_server_that_is_read_only(self, start: Callable[..., RunningServer]) -> None:
        start().stop()
        server = start("--read-only")
        server.process.wait_for("ready to accept requests, read-only")
        server.process.signal(signal.SIGUSR1)
        server.process.wait_for("done, .* rows in")
        server.stop()

    def test_is_refused_while_one_is_being_taken(self, start_server: StartServer, tmp_path: Path) -> None:
        server = start_server([SIGNALS], ["--snap-io-rate-limit", "0.001"], work_dir=tmp_path)
        with IprotoClient.at(server.address) as client:
            client.call("put", 1)
            server.process.signal(signal.SIGUSR1)
            server.process.wait_for("saving snapshot")
            server.process.signal(signal.SIGUSR1)
            server.process.wait_for("warn no snapshot on SIGUSR1: one is already running")
            assert client.call("put", 2).ok
        assert server.process.output.count("saving snapshot") == 1

    def test_where_nothing_has_changed_is_the_last_one(
        self, start_server: StartServer, tmp_path: Path
    ) -> None:
        server = start_server(work_dir=tmp_path)
        server.process.signal(signal.SIGUSR1)
        server.process.wait_for("taking a snapshot on SIGUSR1")
        server.stop()
        assert snapshots(tmp_path) == [numbered(0)]

    def test_which_is_asked_for_while_the_server_starts_is_taken_when_it_is_ready(
        self, start: Callable[..., RunningServer], tmp_path: Path
    ) -> None:
        """While applications are imported, files are read, and setups run."""
        start().stop()
        kill_in_recovery(tmp_path, signal.SIGUSR1, "os.kill(os.getpid(), signal.SIGUSR1)")
        server = start(application="killed:app")
        server.process.wait_for("taking a snapshot on SIGUSR1")
        server.process.wait_for("done, .* rows in")
        server.stop()

    def test_is_refused_while_the_server_stops(self, start: Callable[..., RunningServer]) -> None:
        server = start("--stop-timeout", "3600")
        with IprotoClient.at(server.address) as client:
            send_call(client, "stubborn")
            server.process.wait_for("begun")
            server.process.signal(signal.SIGTERM)
            server.process.wait_for("stopping")
            server.process.signal(signal.SIGUSR1)
            server.process.wait_for("warn no snapshot on SIGUSR1: the server is stopping")
            server.process.signal(signal.SIGTERM)
            assert server.process.wait(timeout=PATIENCE) == 0


def kill_in_recovery(directory: Path, number: signal.Signals, at_import: str = "") -> None:
    """Write an application that sends its own process a signal while the database is being recovered."""
    (directory / "killed.py").write_text(
        dedent(f"""\
            import os, signal
            from iproto_server.storage import storage
            from tests.server.process.signals_application import app
            recover = storage.recover
            def killed(*arguments, **options):
                print("recovering", flush=True)
                os.kill(os.getpid(), signal.{number.name})
                return recover(*arguments, **options)
            storage.recover = killed
            app.setup(lambda box: {at_import or "None"})
            {at_import}
        """)
    )


class TestTheStart:
    def test_ends_at_once_on_sigterm_and_loses_nothing(
        self, start: Callable[..., RunningServer], tmp_path: Path
    ) -> None:
        first = start()
        with IprotoClient.at(first.address) as client:
            client.call("put", 1)
        first.stop()
        files = sorted(path.name for path in tmp_path.iterdir())
        kill_in_recovery(tmp_path, signal.SIGTERM)
        done = subprocess.run(
            [sys.executable, "-m", "iproto_server", "serve", "killed:app", "--listen", "127.0.0.1:0"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert (done.returncode, done.stdout) == (-signal.SIGTERM, "recovering\n")
        (tmp_path / "killed.py").unlink()
        assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == files
        server = start()
        with IprotoClient.at(server.address) as client:
            assert client.call("numbers").data == [[1]]
        server.stop()

    def test_with_a_setup_that_never_ends_is_ended_by_two(self, tmp_path: Path) -> None:
        (tmp_path / "endless.py").write_text(
            "from iproto_server import Application\n"
            "app = Application('endless')\n"
            "@app.setup\n"
            "def setup(box):\n"
            "    print('begun', flush=True)\n"
            "    while True: pass\n"
        )
        with subprocess.Popen(
            [sys.executable, "-m", "iproto_server", "serve", "endless:app", "--listen", "127.0.0.1:0"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE)
            assert process.returncode in (128 + signal.SIGTERM, 128 + signal.SIGINT)
            assert "in setup" in errors


class TestTheStop:
    def test_has_one_deadline_for_everything_it_waits_for(self, tmp_path: Path) -> None:
        """A client that was told and stays, a procedure, a task that is not to be cancelled, a slow reader:
        none of them has a time of its own."""
        more = Application("more")
        released: list[bool] = []

        @more.background
        async def stay(box: Box) -> None:
            while not released:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.01)

        running = ServerInProcess(tmp_path, [plain_application, more], stop_timeout=3600.0)
        server = running.server

        async def stop_and_hurry() -> list[bool]:
            stopping = asyncio.ensure_future(server.stop())
            await asyncio.sleep(0)
            has_ended = [stopping.done()]
            server.stop_waiting()
            await stopping
            return [*has_ended, stopping.done()]

        with running:
            try:
                watching, waiting, reading = (running.connect() for _ in range(3))
                watching.send(RequestType.WATCH, {Key.EVENT_KEY: "box.shutdown"})
                watching.receive()
                send_call(waiting, "gate.wait", "never")
                for _ in range(20):
                    send_call(reading, "big", 1 << 20)
                assert waiting.call("echo", 1).ok
                assert running.run(stop_and_hurry()) == [False, True]
                assert not server.state.connections
            finally:
                # What ends the server of a test finds nothing left to wait for.
                server.stop_waiting()
                released.append(True)
                server.stop = already_stopped  # type: ignore[method-assign]

    def test_of_no_length_waits_for_nobody(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], ["--stop-timeout", "0"])
        with IprotoClient.at(server.address) as client:
            send_call(client, "slow", 3600)
            assert client.call("echo", 1).data == [[1]]
            server.stop()

    def test_may_be_given_more_time_while_the_server_runs(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], ["--stop-timeout", "0"])
        with IprotoClient.at(server.address) as client, IprotoClient.at(server.address) as other:
            assert client.call("box.cfg", {"stop_timeout": 3600}).ok
            sync = send_call(client, "gate.wait", "gate")
            assert client.call("echo", 1).ok
            waiting = send_call(other, "park", 3600)
            server.process.signal(signal.SIGTERM)
            assert other.receive().sync == waiting
            server.process.signal(signal.SIGTERM)
            assert client.receive().sync == sync
            assert server.process.wait(timeout=PATIENCE) == 0

    def test_waits_for_nobody_any_more_after_a_second_signal(
        self, start: Callable[..., RunningServer]
    ) -> None:
        server = start("--stop-timeout", "3600")
        with IprotoClient.at(server.address) as client:
            client.call("put", 1)
            send_call(client, "stubborn")
            server.process.wait_for("begun")
            server.process.signal(signal.SIGTERM)
            server.process.wait_for("stopping")
            server.process.signal(signal.SIGINT)
            server.process.wait_for("second stop signal")
            assert server.process.wait(timeout=PATIENCE) == 0
        server.process.wait_for("stopped")


class TestAProcessThatDoesNotEnd:
    """It is ended, the log says where it was, and what was acknowledged is there afterwards."""

    @pytest.mark.parametrize(
        ("procedure", "number", "status"),
        [("loop", signal.SIGTERM, 143), ("loop", signal.SIGINT, 130), ("sleep", signal.SIGTERM, 143)],
    )
    def test_is_ended_by_the_second_signal(
        self, start: Callable[..., RunningServer], procedure: str, number: signal.Signals, status: int
    ) -> None:
        server = start("--stop-timeout", "3600")
        with IprotoClient.at(server.address) as client:
            assert client.call("put", 1).ok
            send_call(client, procedure)
            server.process.wait_for("begun")
            server.process.wait_for(
                f"warn the event loop is blocked .* procedure={procedure} user=guest peer=127.0.0.1:"
            )
            assert signal_until_it_ends(server, number) == status
        assert (
            f"ending the process with status {status}; position of its main thread:" in server.process.output
        )
        assert f", in {procedure}\n" in server.process.output
        server = start()
        with IprotoClient.at(server.address) as client:
            assert client.call("numbers").data == [[1]]
        server.stop()

    def test_is_ended_behind_the_deadline_by_the_first_one(self, start: Callable[..., RunningServer]) -> None:
        server = start("--stop-timeout", "0")
        with IprotoClient.at(server.address) as client:
            send_call(client, "loop")
            server.process.wait_for("begun")
            server.process.signal(signal.SIGTERM)
            assert server.process.wait(timeout=PATIENCE) == 128 + signal.SIGTERM
        assert ", in loop\n" in server.process.output

    def test_is_ended_when_a_thread_of_an_application_keeps_it_after_the_stop(
        self, start: Callable[..., RunningServer]
    ) -> None:
        server = start("--stop-timeout", "0")
        with IprotoClient.at(server.address) as client:
            client.call("linger")
        server.process.signal(signal.SIGTERM)
        assert server.process.wait(timeout=PATIENCE) == 128 + signal.SIGTERM
        server.process.wait_for("stopped")
        server.process.wait_for("StillRunning: threads: .*lingering")

    def test_is_ended_also_when_nobody_reads_the_log(self, tmp_path: Path) -> None:
        """The main thread waits in the log, and has its lock."""
        with subprocess.Popen(
            [sys.executable, "-m", "iproto_server", "serve", SIGNALS, "--listen", f"unix:{tmp_path}/socket"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            while "ready to accept" not in process.stderr.readline():
                """It starts."""
            with IprotoClient.at(f"unix:{tmp_path}/socket") as client:
                send_call(client, "chatter")
                assert process.stdout.readline() == "begun\n"
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGINT)
                assert process.wait(timeout=PATIENCE) in (128 + signal.SIGTERM, 128 + signal.SIGINT)


class TestStandardStreams:
    @pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- >&- 2>&-"])
    def test_it_runs_without_them(self, tmp_path: Path, closed: str) -> None:
        address = f"unix:{tmp_path}/socket"
        words = [sys.executable, "-m", "iproto_server", "serve", SIGNALS, "--listen", address]
        ready = tmp_path / "socket"
        with subprocess.Popen(
            ["bash", "-c", f"exec {shlex.join(words)} {closed}"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stderr=subprocess.DEVNULL,
        ) as process:
            while not ready.exists() and process.poll() is None:
                """It starts, or dies."""
            client = _connected(address, process)
            assert client.call("put", 1).ok
            client.close()
            targets = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in range(3)]
            assert not [target for target in targets if "xlog" in target or "socket" in target]
            process.send_signal(signal.SIGUSR1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=PATIENCE) == 0

    def test_it_runs_when_nobody_hears_its_log_any_more(self, tmp_path: Path) -> None:
        reader, writer = os.pipe()
        with subprocess.Popen(
            [sys.executable, "-m", "iproto_server", "serve", SIGNALS, "--listen", f"unix:{tmp_path}/socket"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stderr=writer,
        ) as process:
            os.close(writer)
            with open(reader, encoding="utf-8") as log:
                while "ready to accept" not in log.readline():
                    """It starts."""
            with IprotoClient.at(f"unix:{tmp_path}/socket") as client:
                process.send_signal(signal.SIGUSR1)
                assert client.call("put", 1).ok
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=PATIENCE) == 0


def _connected(address: str, process: subprocess.Popen[bytes]) -> IprotoClient:
    """A client of a server whose socket is there, but may not be listened on yet."""
    while True:
        try:
            return IprotoClient.at(address)
        except ConnectionRefusedError:
            assert process.poll() is None
