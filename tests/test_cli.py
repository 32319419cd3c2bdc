"""The `iproto-server` command."""

from __future__ import annotations

import errno
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import iproto_server.server
from iproto_server import Application
from iproto_server.cli import main
from iproto_server.config.address import Address
from iproto_server.config.config import Config, ConfigError, GraphiteConfig
from iproto_server.config.options import OPTIONS
from iproto_server.errors import BoxError
from iproto_server.importer import ImportAnew
from iproto_server.server import ServiceManager
from iproto_server.testing.logged_process import LoggedProcess
from tests.programs import REPOSITORY

JOBS = """
from iproto_server import Application

app = Application("jobs")
number = 5
"""


class FakeServer:
    """Stands in for `iproto_server.server.run`: notes what it was asked to serve."""

    def __init__(self) -> None:
        self.config: Config | None = None
        self.applications: list[Application] = []
        self.failure: BaseException | None = None

    def __call__(
        self,
        config: Config,
        applications: Sequence[Application],
        import_anew: ImportAnew | None = None,
        manager: ServiceManager | None = None,
    ) -> int:
        self.config = config
        self.applications = list(applications)
        if self.failure is not None:
            raise self.failure
        return 0


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    """What the command would have served."""
    server = FakeServer()
    monkeypatch.setattr(iproto_server.server, "run", server)
    return server


@pytest.fixture(autouse=True)
def _leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run in an empty directory, without options in the environment, and forget modules and log settings."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("IPROTO_SERVER_")]:
        monkeypatch.delenv(name)
    (tmp_path / "cli_jobs.py").write_text(JOBS)
    root, modules = logging.getLogger(), set(sys.modules)
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in set(sys.modules) - modules:
        if name.startswith("cli_"):
            del sys.modules[name]


class TestServe:
    def test_without_options(self, served: FakeServer) -> None:
        assert main(["serve"]) == 0
        assert served.config == Config()
        assert served.applications == []

    def test_too_few_descriptors(
        self, served: FakeServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(resource, "getrlimit", lambda kind: (16, 16))
        monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: None)
        assert main(["serve", "cli_jobs:app"]) == 2
        assert capsys.readouterr().err.startswith(
            "iproto-server: the limit of open files is 16, and the server needs at least 48: raise it with "
        )
        assert served.config is None

    def test_a_limit_of_descriptors_that_can_be_raised(
        self, served: FakeServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        limits = [(16, 4096)]
        monkeypatch.setattr(resource, "getrlimit", lambda kind: limits[-1])
        monkeypatch.setattr(resource, "setrlimit", lambda kind, asked: limits.append(asked))
        assert main(["serve", "cli_jobs:app"]) == 0
        assert limits[-1] == (48, 4096)

    def test_applications_are_imported_from_the_current_directory(self, served: FakeServer) -> None:
        assert main(["serve", "cli_jobs:app"]) == 0
        assert [application.name for application in served.applications] == ["jobs"]

    def test_options(self, served: FakeServer) -> None:
        arguments = ["--listen", "127.0.0.1:3301", "--listen", "unix:jobs.sock", "--work-dir", "data"]
        arguments += ["--net-msg-max=10", "--max-frame", "1M", "--log-level", "warn", "--allow-guest"]
        arguments += ["--wal-mode", "fsync", "--wal-dir", "logs", "--wal-max-size", "1M", "--force-recovery"]
        arguments += ["--graphite", "carbon:2003", "--graphite-protocol", "udp", "--graphite-interval", "5"]
        assert main(["serve", *arguments]) == 0
        assert served.config == Config(
            listen=(Address("127.0.0.1", 3301), Address(path="jobs.sock")),
            work_dir=Path("data"),
            net_msg_max=10,
            max_frame=1048576,
            log_level="warn",
            allow_guest=True,
            wal_mode="fsync",
            wal_dir=Path("logs"),
            wal_max_size=1048576,
            force_recovery=True,
            graphite=GraphiteConfig(Address("carbon", 2003), "udp", interval=5.0),
        )

    def test_the_environment_and_a_file(self, served: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("server.toml").write_text('apps = "cli_jobs:app"\nnet_msg_max = 10\nlog_level = "error"\n')
        monkeypatch.setenv("IPROTO_SERVER_CONFIG", "server.toml")
        monkeypatch.setenv("IPROTO_SERVER_NET_MSG_MAX", "20")
        assert main(["serve", "--log-level", "warn"]) == 0
        assert served.config == Config(apps=("cli_jobs:app",), net_msg_max=20, log_level="warn")
        assert [application.name for application in served.applications] == ["jobs"]

    def test_a_flag_of_the_environment_can_be_turned_off(
        self, served: FakeServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("IPROTO_SERVER_ALLOW_GUEST", "true")
        assert main(["serve", "--no-allow-guest"]) == 0
        assert served.config == Config()


class TestRefusals:
    """Each is one line on stderr that begins with the program's name, and nothing is served."""

    @pytest.fixture(autouse=True)
    def _nothing_is_served(self, served: FakeServer) -> Iterator[None]:
        yield
        assert served.config is None or served.failure is not None

    def refusal(self, arguments: Sequence[str], status: int, capsys: pytest.CaptureFixture[str]) -> str:
        assert main(arguments) == status
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("iproto-server: ")
        assert captured.err.count("\n") == 1
        return captured.err.removeprefix("iproto-server: ").rstrip("\n")

    @pytest.mark.parametrize(
        ("arguments", "reason"),
        [
            (["serve", "--lisen", "3301"], "--listen"),
            (["serve", "--listen"], "requires an argument"),
            (
                ["serve", "--listen", "nonsense"],
                '--listen: "nonsense" is not an address: expected PORT, HOST:PORT',
            ),
            (
                ["serve", "--wal-mode", "sync"],
                '--wal-mode: unknown wal mode "sync": choose none, write or fsync',
            ),
            (["serve", "--wal-dir", "cli_jobs.py"], '--wal-dir: "cli_jobs.py" is not a directory'),
            (["serve", "--memtx-dir", "cli_jobs.py"], '--memtx-dir: "cli_jobs.py" is not a directory'),
            (["serve", "--checkpoint-count", "0"], "--checkpoint-count: 0 is out of bounds"),
            (
                ["serve", "--checkpoint-interval", "daily"],
                '--checkpoint-interval: "daily" is not an interval',
            ),
            (["serve", "--snap-io-rate-limit", "fast"], '--snap-io-rate-limit: "fast" is not a rate'),
            (["serve", "--net-msg-max", "0"], "--net-msg-max: 0 is out of bounds"),
            (
                ["serve", "jobs"],
                'MODULE:APP: "jobs" is not an application: expected MODULE:ATTRIBUTE or FILE.lua',
            ),
            (["serve", "--config", "nowhere.toml"], "cannot read nowhere.toml: No such file or directory"),
            (["server"], "No such command"),
        ],
    )
    def test_a_wrong_command_line(
        self, arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert reason in self.refusal(arguments, 2, capsys)

    def test_a_wrong_file(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("server.toml").write_text("lisen = 3301")
        message = self.refusal(["serve", "--config", "server.toml"], 2, capsys)
        assert message == 'server.toml: unknown key "lisen", did you mean "listen"?'

    def test_a_wrong_environment(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("IPROTO_SERVER_LOG_FORMAT", "xml")
        message = self.refusal(["serve"], 2, capsys)
        assert message == 'IPROTO_SERVER_LOG_FORMAT: unknown log format "xml": choose plain or json'

    def test_an_application_whose_module_is_missing(self, capsys: pytest.CaptureFixture[str]) -> None:
        message = self.refusal(["serve", "no_such_jobs:app"], 1, capsys)
        assert message == 'cannot import "no_such_jobs:app": there is no module "no_such_jobs"'

    def test_an_application_whose_attribute_is_missing(self, capsys: pytest.CaptureFixture[str]) -> None:
        message = self.refusal(["serve", "cli_jobs:application"], 1, capsys)
        assert message == 'cannot import "cli_jobs:application": "cli_jobs" has no attribute "application"'

    def test_an_application_that_is_none(self, capsys: pytest.CaptureFixture[str]) -> None:
        message = self.refusal(["serve", "cli_jobs:number"], 1, capsys)
        assert (
            message == 'cannot import "cli_jobs:number": it is of type int, not an iproto_server.Application'
        )

    def test_an_application_whose_module_raises(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("cli_broken.py").write_text("1 // 0\n")
        message = self.refusal(["serve", "cli_broken:app"], 1, capsys)
        assert "raised ZeroDivisionError: integer division or modulo by zero" in message
        assert message.endswith("cli_broken.py, line 1)")

    def test_an_address_in_use(self, served: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
        served.failure = OSError(errno.EADDRINUSE, "cannot listen on 127.0.0.1:3301: Address already in use")
        message = self.refusal(["serve"], 1, capsys)
        assert message == "cannot listen on 127.0.0.1:3301: Address already in use"

    def test_a_file_that_cannot_be_had(self, served: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
        served.failure = PermissionError(errno.EACCES, "Permission denied", "/var/lib/jobs")
        assert self.refusal(["serve"], 1, capsys) == "Permission denied: /var/lib/jobs"

    def test_what_the_server_will_not_start_with(
        self, served: FakeServer, capsys: pytest.CaptureFixture[str]
    ) -> None:
        served.failure = ConfigError("guest could do everything\nfrom everywhere")
        assert self.refusal(["serve"], 2, capsys) == "guest could do everything from everywhere"

    def test_a_setup_that_fails(self, served: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
        served.failure = BoxError.procedure("no room")
        assert self.refusal(["serve"], 1, capsys) == "the application's setup failed: no room"

    def test_being_interrupted_before_it_serves(
        self, served: FakeServer, capsys: pytest.CaptureFixture[str]
    ) -> None:
        served.failure = KeyboardInterrupt()
        assert main(["serve"]) == 1
        assert capsys.readouterr().err.strip() == "iproto-server: interrupted"

    def test_debugging_shows_where_it_came_from(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("cli_broken.py").write_text("1 // 0\n")
        assert main(["serve", "cli_broken:app", "--log-level", "debug"]) == 1
        error = capsys.readouterr().err
        assert "Traceback (most recent call last):" in error
        assert error.splitlines()[-1].startswith("iproto-server: cannot import")


class TestHelp:
    def test_every_option_is_there_with_its_default_under_a_heading(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["serve", "--help"]) == 0
        text = capsys.readouterr().out
        words = " ".join(text.split())
        for option in OPTIONS:
            assert (f"{option.flag} " in words) or (f"[{option.flag}]" in words)
            if option.default:
                assert f"[default: {option.default}]" in words
            if option.group:
                assert f"\n{option.group}:\n" in text
        assert "\nExamples:\n" in text
        assert "IPROTO_SERVER_WORK_DIR" in words
        assert all(len(line) <= 100 for line in text.splitlines())

    @pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
    def test_the_commands_are_listed(self, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main(arguments) == 0
        lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
        assert "serve Load applications and serve them." in lines
        assert "cat Show the rows of logs and snapshots." in lines
        assert "release Make tasks ready that are taken, delayed or buried." in lines

    def test_no_command_gets_the_help(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main([]) == 2
        assert "Usage: iproto-server" in capsys.readouterr().err

    def test_the_version(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["--version"]) == 0
        assert capsys.readouterr().out.startswith("iproto-server ")


@pytest.mark.process
class TestProcess:
    """The whole command, as a user runs it."""

    @pytest.fixture(autouse=True)
    def _end_processes(self) -> Iterator[None]:
        self.processes: list[LoggedProcess] = []
        yield
        for process in self.processes:
            if process.running:
                process.kill()

    def process(self, *arguments: str) -> LoggedProcess:
        command = [sys.executable, "-m", "iproto_server", "serve", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        self.processes.append(LoggedProcess(command, cwd=Path.cwd(), env=environment))
        return self.processes[-1]

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_it_serves_until_a_signal(self, number: signal.Signals) -> None:
        process = self.process("cli_jobs:app", "--listen", "127.0.0.1:0")
        port = int(process.wait_for(r"listening .*127\.0\.0\.1:([1-9][0-9]*)")[1])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            assert client.recv(128).startswith(b"Tarantool ")
            process.signal(number)
            assert process.wait() == 0

    def test_a_start_without_an_application_says_so(self) -> None:
        process = self.process("--listen", "127.0.0.1:0")
        process.wait_for(r"warn no application is given \(MODULE:APP\): .*only use box and its spaces")
        assert process.terminate() == 0
        process = self.process("cli_jobs:app", "--listen", "127.0.0.1:0")
        process.wait_for("ready to accept requests")
        assert process.terminate() == 0
        assert "no application" not in process.output

    def test_the_log_can_be_json(self) -> None:
        process = self.process("--listen", "127.0.0.1:0", "--log-format", "json")
        process.wait_for(r'^\{"time": ".*Z", "level": "info", .*listening')
        assert process.terminate() == 0

    def test_a_port_in_use(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            process = self.process("--listen", address, "--log-level", "warn")
            assert process.wait() == 1
        assert process.output == f"iproto-server: cannot listen on {address}: Address already in use"

    def test_a_unix_socket_in_use(self) -> None:
        with socket.socket(socket.AF_UNIX) as taken:
            taken.bind("taken.sock")
            taken.listen()
            process = self.process("--listen", "unix:taken.sock", "--log-level", "warn")
            assert process.wait() == 1
        assert process.output == "iproto-server: cannot listen on unix:taken.sock: Address already in use"

    def test_guest_is_not_given_to_the_network_by_accident(self) -> None:
        process = self.process("--listen", "0.0.0.0:0", "--log-level", "warn")
        assert process.wait() == 2
        assert process.output.startswith("iproto-server: ")
        assert "--allow-guest" in process.output
        assert "\n" not in process.output

    def test_unless_it_is_allowed(self) -> None:
        process = self.process("--listen", "0.0.0.0:0", "--allow-guest")
        process.wait_for("listening")
        assert process.terminate() == 0
