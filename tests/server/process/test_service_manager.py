"""What the service manager is told, message by message."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from iproto_server.server import service_manager
from iproto_server.server.service_manager import (
    LEAST_EXTENSION,
    PROGRESS_INTERVAL,
    STATUS_INTERVAL,
    STATUS_MAX,
    RecoveryStatus,
    ServiceManager,
)
from tests.server.process.notified import EXTENSION, Service
from tests.server.process.notify_socket import NotifySocket


class Clock:
    """A time that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def notified(tmp_path: Path) -> Iterator[NotifySocket]:
    """Where the messages arrive."""
    with NotifySocket(f"{tmp_path}/notify") as notified:
        yield notified


def timers(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, Callable[[], None]]]:
    """Note what the running loop is asked to call later, instead of calling it."""
    noted: list[tuple[float, Callable[[], None]]] = []

    def call_later(delay: float, function: Callable[..., None], *arguments: object) -> None:
        noted.append((delay, lambda: function(*arguments)))

    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", call_later)
    return noted


class TestMessages:
    def test_about_the_start_ask_for_time(self, notified: NotifySocket) -> None:
        clock = Clock()
        manager = ServiceManager(notified.path, clock=clock)
        manager.starting("importing")
        clock.now += 3600
        manager.starting("going on")
        assert notified.waiting() == [
            {"STATUS": "importing", EXTENSION: f"{LEAST_EXTENSION * 1e6:.0f}"},
            {"STATUS": "going on", EXTENSION: "3600000000"},
        ]

    def test_about_a_recovery_come_from_time_to_time(self, notified: NotifySocket) -> None:
        clock = Clock()
        recovery = RecoveryStatus(ServiceManager(notified.path, clock=clock))
        recovery.begin(2000)
        recovery.update(1, 10)
        clock.now += PROGRESS_INTERVAL
        recovery.update(1234, 500)
        recovery.update(1235, 501)
        clock.now += PROGRESS_INTERVAL / 2
        recovery.update(1236, 502)
        recovery.end()
        messages = notified.waiting()
        assert [message["STATUS"] for message in messages] == [
            "recovering",
            "recovering: 1,234 rows, 25 %",
            "read 1,236 rows",
        ]
        assert all(EXTENSION in message for message in messages)

    def test_about_a_recovery_without_a_byte(self, notified: NotifySocket) -> None:
        clock = Clock()
        recovery = RecoveryStatus(ServiceManager(notified.path, clock=clock))
        recovery.begin(0)
        clock.now += PROGRESS_INTERVAL
        recovery.update(0, 0)
        assert [message["STATUS"] for message in notified.waiting()] == [
            "recovering",
            "recovering: 0 rows, 100 %",
        ]

    def test_of_the_status_come_when_it_has_changed(
        self, notified: NotifySocket, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def serve() -> None:
            noted = timers(monkeypatch)
            status = ["one"]
            manager = ServiceManager(notified.path)
            manager.ready(lambda: status[0])
            assert notified.waiting() == [{"READY": "1", "STATUS": "one"}]
            for text, messages in (("one", []), ("two", [{"STATUS": "two"}]), ("two", [])):
                [(delay, look)] = noted
                noted.clear()
                status[0] = text
                look()
                assert (delay, notified.waiting()) == (STATUS_INTERVAL, messages)
            manager.stopping(8)
            [(_, look)] = noted
            noted.clear()
            status[0] = "three"
            look()
            assert notified.waiting() == [{"STOPPING": "1", "STATUS": "stopping", EXTENSION: "8000000"}]
            assert noted == []

        asyncio.run(serve())

    def test_are_signs_of_life_at_half_the_interval(
        self, notified: NotifySocket, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def serve() -> None:
            noted = timers(monkeypatch)
            ServiceManager(notified.path, watchdog=20.0).ready(str)
            assert notified.waiting() == [{"READY": "1", "STATUS": ""}, {"WATCHDOG": "1"}]
            for _ in range(3):
                [(_, beat)] = [timer for timer in noted if timer[0] == 10]
                noted.clear()
                beat()
                assert notified.waiting() == [{"WATCHDOG": "1"}]
                [(delay, _)] = noted
                assert delay == 10

        asyncio.run(serve())

    def test_about_a_reload_come_only_while_the_server_serves(
        self, notified: NotifySocket, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def serve() -> None:
            timers(monkeypatch)
            manager = ServiceManager(notified.path, watchdog=30.0)
            manager.reloading()
            manager.reloaded()
            assert notified.waiting() == []
            manager.ready(lambda: "serving")
            notified.waiting()
            before = time.monotonic_ns() // 1000
            manager.reloading()
            [message] = notified.waiting()
            assert before <= int(message.pop("MONOTONIC_USEC")) <= time.monotonic_ns() // 1000
            assert message == {"RELOADING": "1", "STATUS": "reloading", "WATCHDOG": "1"}
            manager.reloaded()
            assert notified.waiting() == [{"READY": "1", "STATUS": "serving"}]
            manager.stopping(1)
            notified.waiting()
            manager.reloading()
            manager.reloaded()
            assert notified.waiting() == []

        asyncio.run(serve())

    @pytest.mark.parametrize(
        ("status", "sent"),
        [
            ("a\nSTOPPING=1\r\nREADY=1", "a STOPPING=1 READY=1"),
            ("a\u2028MAINPID=1", "a MAINPID=1"),
            ("x" * 10_000, "x" * STATUS_MAX),
            ("\N{SNOWMAN}" * 10_000, "\N{SNOWMAN}" * STATUS_MAX),
            ("a\udc80b", "a?b"),
        ],
    )
    def test_are_one_line_whatever_the_status_is(
        self, notified: NotifySocket, status: str, sent: str
    ) -> None:
        ServiceManager(notified.path).starting(status)
        [message] = notified.waiting()
        assert message["STATUS"] == sent
        assert set(message) == {"STATUS", EXTENSION}

    def test_are_lost_or_wait_a_little_when_nobody_reads_them(
        self, notified: NotifySocket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(service_manager, "SEND_TIMEOUT", 0.01)
        manager = ServiceManager(notified.path)
        for number in range(5000):
            manager.starting(str(number))
        assert caplog.messages == []
        manager.stopping(1)
        assert caplog.messages == [
            f"cannot notify the service manager at NOTIFY_SOCKET {notified.path}: timed out"
        ]
        assert notified.waiting()[0]["STATUS"] == "0"
        manager.stopping(1)
        assert notified.waiting()[0]["STOPPING"] == "1"


class TestASocketThatCannotBeUsed:
    @pytest.mark.parametrize(
        ("path", "reason"),
        [
            ("/nowhere/at/all", "No such file or directory"),
            ("@iproto-server-nobody", "Connection refused"),
            ("/" + "x" * 200, "AF_UNIX path too long"),
        ],
    )
    def test_is_one_warning(self, caplog: pytest.LogCaptureFixture, path: str, reason: str) -> None:
        manager = ServiceManager(path)
        manager.starting("one")
        manager.starting("two")
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert caplog.messages == [f"cannot notify the service manager at NOTIFY_SOCKET {path}: {reason}"]

    @pytest.mark.parametrize("path", ["notify", "vsock:2:9999"])
    def test_is_no_unix_socket(self, caplog: pytest.LogCaptureFixture, path: str) -> None:
        manager = ServiceManager(path)
        manager.starting("one")
        assert not manager.is_present
        assert caplog.messages == [
            f'cannot notify the service manager: NOTIFY_SOCKET "{path}" is not a unix socket'
        ]

    def test_is_another_kind_of_socket(self, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
        with socket.socket(socket.AF_UNIX) as stream:
            stream.bind(f"{tmp_path}/stream")
            ServiceManager(f"{tmp_path}/stream").starting("one")
        assert caplog.messages == [
            f"cannot notify the service manager at NOTIFY_SOCKET {tmp_path}/stream:"
            " Protocol wrong type for socket"
        ]


class TestTheEnvironment:
    def environment(self, **variables: str) -> dict[str, str]:
        return {"NOTIFY_SOCKET": "/run/notify", "OTHER": "stays", **variables}

    def test_is_rid_of_the_variables(self) -> None:
        environment = self.environment(WATCHDOG_USEC="30000000", WATCHDOG_PID="7")
        assert ServiceManager.from_environment(environment, 7)._watchdog == 30
        assert environment == {"OTHER": "stays"}

    def test_without_variables_nothing_is_sent(self, caplog: pytest.LogCaptureFixture) -> None:
        manager = ServiceManager.from_environment({}, 7)
        manager.starting("one")
        manager.stopping(1)
        assert not manager.is_present
        assert caplog.messages == []

    def test_may_want_no_signs_of_life_or_those_of_another_process(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        for environment in (
            self.environment(),
            self.environment(WATCHDOG_PID="7"),
            self.environment(WATCHDOG_USEC="30000000", WATCHDOG_PID="8"),
        ):
            assert ServiceManager.from_environment(environment, 7)._watchdog is None
        assert caplog.messages == []

    @pytest.mark.parametrize("interval", ["x", "0", "-1", "1.5", " 1", "٣", str(2**64 - 1), "9" * 40])
    def test_with_a_wrong_interval_is_a_warning(
        self, caplog: pytest.LogCaptureFixture, interval: str
    ) -> None:
        manager = ServiceManager.from_environment(self.environment(WATCHDOG_USEC=interval), 7)
        assert (manager._watchdog, manager.is_present) == (None, True)
        assert caplog.messages == [
            f'no signs of life for the service manager: WATCHDOG_USEC "{interval}"'
            " is not a number of microseconds"
        ]

    @pytest.mark.parametrize("owner", ["x", "-7", "7.0"])
    def test_with_a_wrong_process_is_a_warning(self, caplog: pytest.LogCaptureFixture, owner: str) -> None:
        environment = self.environment(WATCHDOG_USEC="30000000", WATCHDOG_PID=owner)
        assert ServiceManager.from_environment(environment, 7)._watchdog is None
        assert caplog.messages == [
            f'no signs of life for the service manager: WATCHDOG_PID "{owner}" is not a number'
        ]


@pytest.fixture
def service(tmp_path: Path, notified: NotifySocket) -> Iterator[Service]:
    """A service, ended at the end."""
    with ExitStack() as running:
        yield Service(tmp_path, notified, running)
