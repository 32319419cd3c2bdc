"""A server that the service manager runs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from iproto_server.server.service_manager import (
    LEAST_EXTENSION,
)
from tests.iproto_client import IprotoClient
from tests.server.process.notified import APPLICATION, EXTENSION, Service
from tests.server.process.notify_socket import Message, NotifySocket

GRACE = 7
"""Seconds after the deadline of a stop within which the process ends."""


@pytest.fixture
def notified(tmp_path: Path) -> Iterator[NotifySocket]:
    """Where the messages arrive."""
    with NotifySocket(f"{tmp_path}/notify") as notified:
        yield notified


@pytest.fixture
def service(tmp_path: Path, notified: NotifySocket) -> Iterator[Service]:
    """A service, ended at the end."""
    with ExitStack() as running:
        yield Service(tmp_path, notified, running)


def status_of(messages: list[Message]) -> list[str]:
    return [message["STATUS"] for message in messages]


def address_in(message: Message) -> str:
    """The address of the server that is ready."""
    assert message["STATUS"].startswith("serving on ")
    return message["STATUS"].removeprefix("serving on ").partition(";")[0]


class TestAServer:
    def test_tells_start_and_stop(self, service: Service, notified: NotifySocket) -> None:
        process = service.start("--stop-timeout", "2")
        *before, ready = notified.until("READY")
        assert status_of(before) == ["importing the applications", "running the applications' setups"]
        assert all(int(message[EXTENSION]) >= LEAST_EXTENSION * 1e6 for message in before)
        assert ready == {
            "READY": "1",
            "STATUS": f"serving on {address_in(ready)}; 0 connections; generation 1",
        }
        with IprotoClient.at(address_in(ready)) as client:
            assert client.call("box.info").ok
        process.signal(signal.SIGTERM)
        assert notified.change() == {
            "STOPPING": "1",
            "STATUS": "stopping",
            EXTENSION: f"{(2 + GRACE) * 1_000_000}",
        }
        assert process.wait() == 0
        assert notified.waiting() == []

    def test_tells_the_recovery_of_its_files(self, service: Service, notified: NotifySocket) -> None:
        for expected in ([], ["recovering"]):
            process = service.start("--read-only")
            *before, ready = notified.until("READY")
            assert [text for text in status_of(before) if text == "recovering"] == expected
            assert ready["STATUS"].endswith("; read-only")
            process.signal(signal.SIGTERM)
            notified.until("STOPPING")
            assert process.wait() == 0
        assert any(text.startswith("read ") and text.endswith(" rows") for text in status_of(before))

    def test_tells_reloads_and_failed_ones(self, service: Service, notified: NotifySocket) -> None:
        process = service.start()
        address = address_in(notified.until("READY")[-1])
        before = time.monotonic_ns() // 1000
        process.signal(signal.SIGHUP)
        reloading, ready = notified.change(), notified.change()
        assert before <= int(reloading.pop("MONOTONIC_USEC")) <= time.monotonic_ns() // 1000
        assert reloading == {"RELOADING": "1", "STATUS": "reloading"}
        assert set(ready) == {"READY", "STATUS"}
        assert "; generation 2" in ready["STATUS"]
        service.write("raise RuntimeError('broken\\nSTOPPING=1')\n")
        with IprotoClient.at(address) as client:
            assert not client.call("package.reload").ok
            reloading, ready = notified.change(), notified.change()
            assert set(reloading) == {"RELOADING", "MONOTONIC_USEC", "STATUS"}
            assert set(ready) == {"READY", "STATUS"}
            assert ready["STATUS"].startswith("the reload failed, generation 2 stays in force: ")
            assert "broken STOPPING=1" in ready["STATUS"]
            assert "; serving on " in ready["STATUS"]
            service.write(APPLICATION)
            assert client.call("package.reload").data == [3]
            assert "RELOADING" in notified.change()
            assert notified.change()["STATUS"] == f"serving on {address}; 1 connection; generation 3"
        process.signal(signal.SIGTERM)
        assert "STOPPING" in notified.change()
        assert process.wait() == 0

    def test_gives_signs_of_life(self, service: Service, notified: NotifySocket) -> None:
        process = service.start(WATCHDOG_USEC="20000")
        assert not any("WATCHDOG" in message for message in notified.until("READY"))
        for _ in range(5):
            assert notified.receive() == {"WATCHDOG": "1"}
        process.signal(signal.SIGTERM)
        notified.until("STOPPING")
        assert process.wait() == 0

    def test_gives_none_for_another_process(self, service: Service, notified: NotifySocket) -> None:
        process = service.start(WATCHDOG_USEC="1", WATCHDOG_PID=str(os.getpid()))
        notified.until("READY")
        process.signal(signal.SIGTERM)
        assert set(notified.change()) == {"STOPPING", "STATUS", EXTENSION}
        assert process.wait() == 0

    def test_tells_it_through_an_abstract_socket(self, service: Service) -> None:
        with NotifySocket(f"@iproto-server-test-{os.getpid()}") as notified:
            process = service.start(NOTIFY_SOCKET=notified.path)
            notified.until("READY")
            process.signal(signal.SIGTERM)
            notified.until("STOPPING")
            assert process.wait() == 0

    def test_serves_when_nobody_listens_to_it(self, service: Service, tmp_path: Path) -> None:
        gone = f"{tmp_path}/gone"
        process = service.start(NOTIFY_SOCKET=gone, WATCHDOG_USEC="20000")
        process.wait_for("ready to accept requests")
        assert process.terminate() == 0
        warnings = [line for line in process.lines if "warn cannot notify" in line]
        assert len(warnings) == 1
        assert warnings[0].endswith(f"NOTIFY_SOCKET {gone}: No such file or directory")

    def test_keeps_the_variables_to_itself(self, service: Service, notified: NotifySocket) -> None:
        process = service.start(WATCHDOG_USEC="60000000", LISTEN_FDS="1", LISTEN_FDNAMES="x")
        process.wait_for("LISTEN_FDS: descriptor 3")
        assert process.wait() == 2
        process = service.start(WATCHDOG_USEC="60000000")
        with IprotoClient.at(address_in(notified.until("READY")[-1])) as client:
            for names in client.call("variables").data[0]:
                assert "PATH" in names
                assert [name for name in names if name.startswith(("NOTIFY_", "WATCHDOG_", "LISTEN_"))] == []
        assert process.terminate() == 0
