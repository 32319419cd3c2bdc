"""Starting and stopping: where the server listens, who may come in, and how it ends."""

from __future__ import annotations

import signal
import socket
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from iproto_server.protocol.constants import Key, RequestType
from tests.command_line import refused, run_process
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.server.conftest import APPLICATION
from tests.server.login import log_in

CALL = RequestType.CALL
LISTEN = ("--listen", "127.0.0.1:0")


def has_ipv6() -> bool:
    with suppress(OSError), socket.socket(socket.AF_INET6) as some:
        some.bind(("::1", 0))
        return True
    return False


class TestListening:
    def test_tcp_and_unix_sockets_at_once(self, start_server: StartServer, tmp_path: Path) -> None:
        server = start_server([APPLICATION], ["--listen", f"unix:{tmp_path}/box.sock"], listen="127.0.0.1:0")
        server.process.wait_for("ready to accept requests")
        with IprotoClient.at(server.address) as tcp, IprotoClient.at(f"unix:{tmp_path}/box.sock") as unix:
            assert tcp.call("echo", 1).data == unix.call("echo", 1).data == [[1]]
            assert unix.call("who").data[2] == "unix/:"

    def test_a_relative_socket_path_starts_from_the_work_dir(
        self, start_server: StartServer, tmp_path: Path
    ) -> None:
        start_server([APPLICATION], listen="unix:box.sock", work_dir=tmp_path)
        with IprotoClient.at(f"unix:{tmp_path}/box.sock") as client:
            assert client.call("echo", 1).data == [[1]]

    @pytest.mark.parametrize(("mode", "permissions"), [("0660", 0o660), ("600", 0o600), ("0777", 0o777)])
    def test_who_may_connect_to_a_unix_socket_stands_behind_its_path(
        self, start_server: StartServer, tmp_path: Path, mode: str, permissions: int
    ) -> None:
        start_server([APPLICATION], listen=f"unix:box.sock?mode={mode}", work_dir=tmp_path)
        assert stat.S_IMODE((tmp_path / "box.sock").stat().st_mode) == permissions
        with IprotoClient.at(f"unix:{tmp_path}/box.sock") as client:
            assert client.call("echo", 1).data == [[1]]

    def test_every_interface_has_the_same_port(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], ["--allow-guest"], listen="*:0")
        families = []
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with suppress(OSError), socket.socket(family) as client:
                client.connect((host, server.port))
                assert client.recv(9) == b"Tarantool"
                families.append(family)
        assert socket.AF_INET in families
        assert (socket.AF_INET6 in families) == has_ipv6()

    def test_a_socket_that_a_killed_server_left_is_taken_over(
        self, start_server: StartServer, tmp_path: Path
    ) -> None:
        address = f"unix:{tmp_path}/box.sock"
        with socket.socket(socket.AF_UNIX) as left_over:
            left_over.bind(f"{tmp_path}/box.sock")
        start_server([APPLICATION], listen=address)
        with IprotoClient.at(address) as client:
            assert client.call("echo", 1).data == [[1]]

    def test_a_socket_is_gone_when_the_server_has_stopped(
        self, start_server: StartServer, tmp_path: Path
    ) -> None:
        server = start_server([APPLICATION], listen=f"unix:{tmp_path}/box.sock")
        server.stop()
        assert not (tmp_path / "box.sock").exists()

    def test_an_address_in_use_is_one_line(self, start_server: StartServer, tmp_path: Path) -> None:
        server = start_server([APPLICATION])
        words = refused(tmp_path, APPLICATION, listen=server.address)
        assert words == f"cannot listen on {server.address}: Address already in use"

    def test_a_socket_path_in_use_is_one_line(self, start_server: StartServer, tmp_path: Path) -> None:
        start_server([APPLICATION], listen=f"unix:{tmp_path}/box.sock")
        words = refused(tmp_path, APPLICATION, listen=f"unix:{tmp_path}/box.sock")
        assert words.endswith("Address already in use")

    def test_a_path_that_is_no_socket_is_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "precious").write_text("data")
        refused(tmp_path, APPLICATION, listen=f"unix:{tmp_path}/precious")
        assert (tmp_path / "precious").read_text() == "data"


class TestGuest:
    def test_guest_may_do_everything_while_only_this_machine_can_connect(
        self, start_server: StartServer
    ) -> None:
        with IprotoClient.at(start_server([APPLICATION]).address) as client:
            assert client.call("who").data[1] == "guest"

    def test_an_open_server_without_access_does_not_start(self, tmp_path: Path) -> None:
        assert "--allow-guest" in refused(tmp_path, APPLICATION, listen="0.0.0.0:0", status=2)

    def test_unless_it_is_told_to(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], ["--allow-guest"], listen="0.0.0.0:0")
        with IprotoClient.at(f"127.0.0.1:{server.port}") as client:
            assert client.call("who").data[1] == "guest"

    @pytest.mark.parametrize("option", [["--guest", "none"], ["--guest", "none", "--no-allow-guest"]])
    def test_on_loopback_guest_may_be_left_without_rights(
        self, start_server: StartServer, option: list[str]
    ) -> None:
        server = start_server([APPLICATION, "tests.server.accounts:app"], option)
        with IprotoClient.at(server.address) as client:
            refused = (42, "Execute access to function 'who' is denied for user 'guest'")
            assert client.call("who").failure == refused
            assert log_in(client, "alice", "secret").ok
            assert client.call("who").data[1] == "alice"
        assert "no client can log in" not in server.process.output

    def test_a_server_that_nobody_can_log_in_to_says_so(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], ["--guest", "none"])
        server.process.wait_for("no client can log in: guest has no rights, and no user has a password")

    def test_guest_all_is_allow_guest(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], ["--guest", "all"], listen="0.0.0.0:0")
        with IprotoClient.at(f"127.0.0.1:{server.port}") as client:
            assert client.call("who").data[1] == "guest"

    def test_with_a_user_that_has_a_password_it_starts_and_guest_may_do_nothing(
        self, start_server: StartServer, tmp_path: Path
    ) -> None:
        (tmp_path / "guarded.py").write_text(
            "from iproto_server import Application\n"
            "app = Application('guarded')\n"
            "@app.setup\n"
            "def setup(box):\n"
            "    box.schema.user.create('alice', password='secret', if_not_exists=True)\n"
        )
        server = start_server([APPLICATION, "guarded:app"], listen="0.0.0.0:0", work_dir=tmp_path)
        with IprotoClient.at(f"127.0.0.1:{server.port}") as client:
            assert client.call("who").failure == (
                42,
                "Execute access to function 'who' is denied for user 'guest'",
            )


class TestApplications:
    def test_garbage_is_collected_less_often_than_by_default(self, start_server: StartServer) -> None:
        with IprotoClient.at(start_server([APPLICATION]).address) as client:
            assert client.call("collect_after").data == [[10_000, 0, 120]]

    def test_garbage_is_collected_as_often_as_an_application_wants(
        self, start_server: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "collecting.py").write_text(
            "import gc; from iproto_server import Application; app = Application('x'); gc.set_threshold(500)"
        )
        monkeypatch.syspath_prepend(tmp_path)
        server = start_server([APPLICATION, "collecting:app"])
        with IprotoClient.at(server.address) as client:
            assert client.call("collect_after").data == [[500, 0, 120]]

    def test_two_that_claim_one_name_are_told_apart_at_the_start(self, tmp_path: Path) -> None:
        (tmp_path / "other.py").write_text(
            "from iproto_server import Application\n"
            "app = Application('other')\n"
            "app.procedure('echo')(lambda box: None)\n"
        )
        done = run_process("serve", APPLICATION, "other:app", *LISTEN, directory=tmp_path)
        assert done.returncode == 2
        assert done.stderr.strip() == (
            'iproto-server: the applications "test" and "other" both define "echo";'
            " serve them in two processes"
        )

    def test_a_background_task_runs_and_is_cancelled(self, start_server: StartServer, tmp_path: Path) -> None:
        (tmp_path / "steady.py").write_text(
            "import asyncio\n"
            "from iproto_server import Application\n"
            "app = Application('steady')\n"
            "@app.background\n"
            "async def work(box):\n"
            "    print('working', flush=True)\n"
            "    try:\n"
            "        await asyncio.Event().wait()\n"
            "    finally:\n"
            "        print('cancelled', flush=True)\n"
            "@app.on_stop\n"
            "def stop(box):\n"
            "    print('stopped', flush=True)\n"
        )
        server = start_server(["steady:app"], work_dir=tmp_path)
        server.process.wait_for("working")
        server.stop()
        assert [line for line in server.process.lines if line in ("cancelled", "stopped")] == [
            "cancelled",
            "stopped",
        ]

    def test_a_setup_that_fails_is_told_in_the_last_line(self, tmp_path: Path) -> None:
        (tmp_path / "broken.py").write_text(
            "from iproto_server import Application\n"
            "app = Application('broken')\n"
            "@app.setup\n"
            "def setup(box):\n"
            "    box.space.no_such_space.len()\n"
            "crash = Application('crash')\n"
            "@crash.setup\n"
            "def crash_setup(box):\n"
            "    1 // 0\n"
        )
        for name, reason in (
            ("app", "Space 'no_such_space' does not exist"),
            ("crash", "ZeroDivisionError: integer division or modulo by zero"),
        ):
            done = run_process("serve", f"broken:{name}", *LISTEN, directory=tmp_path)
            assert done.returncode == 1
            expected = f"iproto-server: the application's setup failed: {reason}"
            assert done.stderr.splitlines()[-1] == expected

    def test_a_background_task_that_never_began_is_no_reason_to_complain(
        self, start_server: StartServer, tmp_path: Path
    ) -> None:
        (tmp_path / "early.py").write_text(
            "from iproto_server import Application\n"
            "app = Application('early')\n"
            "@app.background\n"
            "async def work(box):\n"
            "    pass\n"
        )
        address = start_server([APPLICATION]).address
        done = run_process("serve", "early:app", "--listen", address, directory=tmp_path)
        assert "never awaited" not in done.stderr
        assert done.stderr.splitlines()[-1].endswith("Address already in use")


class TestStopping:
    def test_who_waits_for_a_snapshot_hears_that_it_is_given_up(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], ["--snap-io-rate-limit", "0.001"])
        with IprotoClient.at(server.address) as client:
            client.call("row")
            client.send(CALL, {Key.FUNCTION_NAME: "box.snapshot", Key.TUPLE: []})
            server.process.wait_for("saving snapshot")
            server.process.signal(signal.SIGTERM)
            assert client.receive().failure == (115, "the snapshot was cancelled")
        assert server.process.wait() == 0

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_it_finishes_what_is_running_and_exits_with_0(
        self, start_server: StartServer, number: signal.Signals
    ) -> None:
        server = start_server([APPLICATION])
        with IprotoClient.at(server.address) as running, IprotoClient.at(server.address) as other:
            sync = running.send(CALL, {Key.FUNCTION_NAME: "slow", Key.TUPLE: [0.3]})
            waiting = other.send(CALL, {Key.FUNCTION_NAME: "park", Key.TUPLE: [60]})
            while other.call("gate.most").data[0] < 1:
                """A task starts with the loop's next iteration."""
            server.process.signal(number)
            response = other.receive()
            assert (response.sync, response.data) == (waiting, [])
            response = running.receive()
            assert (response.sync, response.data) == (sync, ["done"])
            assert running.closed_by_server()
            assert other.closed_by_server()
        assert server.process.wait() == 0

    def test_what_waits_in_a_stream_behind_a_call_is_answered_with_it(
        self, start_server: StartServer
    ) -> None:
        server = start_server([APPLICATION])
        stream = {Key.STREAM_ID: 1}
        with IprotoClient.at(server.address) as client:
            sent = [
                client.send(CALL, {Key.FUNCTION_NAME: name, Key.TUPLE: arguments}, stream)
                for name, arguments in (("park", [60]), ("echo", [1]), ("echo", [2]))
            ]
            assert client.request(RequestType.PING).ok
            server.process.signal(signal.SIGTERM)
            assert [client.receive().sync for _ in sent] == sent
            assert client.closed_by_server()
        assert server.process.wait() == 0

    def test_a_procedure_that_does_not_end_is_given_up(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION])
        with IprotoClient.at(server.address) as client:
            client.send(CALL, {Key.FUNCTION_NAME: "gate.wait", Key.TUPLE: ["never"]})
            client.call("echo")
            server.process.signal(signal.SIGTERM)
            assert server.process.wait() == 0

    def test_a_task_that_does_not_end_is_left_behind(self, start_server: StartServer, tmp_path: Path) -> None:
        (tmp_path / "stubborn.py").write_text(
            "import asyncio\n"
            "from iproto_server import Application\n"
            "app = Application('stubborn')\n"
            "@app.background\n"
            "async def work(box):\n"
            "    while True:\n"
            "        try:\n"
            "            await asyncio.sleep(60)\n"
            "        except asyncio.CancelledError:\n"
            "            pass\n"
        )
        server = start_server(["stubborn:app"], work_dir=tmp_path)
        server.stop()
        assert "does not end after its cancellation" in server.process.output

    def test_a_client_that_goes_on_sending_does_not_hold_it_up(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], ["--net-msg-max", "5"])
        with IprotoClient.at(server.address) as client:
            for _ in range(20):
                client.send(CALL, {Key.FUNCTION_NAME: "slow", Key.TUPLE: [0.05]})
            server.process.signal(signal.SIGTERM)
            server.process.wait_for("stopping")
            with suppress(ConnectionError):
                while True:
                    client.send(CALL, {Key.FUNCTION_NAME: "slow", Key.TUPLE: [0.05]})
            assert server.process.wait() == 0

    def test_a_client_that_does_not_read_does_not_hold_it_up(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION])
        with IprotoClient.at(server.address, receive_buffer=4096) as client:
            for _ in range(20):
                client.send(CALL, {Key.FUNCTION_NAME: "big", Key.TUPLE: [1 << 20]})
            server.process.signal(signal.SIGTERM)
            assert server.process.wait() == 0
