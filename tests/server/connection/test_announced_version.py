"""The version in the greeting, for clients that need another one than the server's own."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
import uvloop

from tests.server.in_process import ServerInProcess


@pytest.mark.parametrize("version", ["2.11.0", "2.8.4", "3.0.0"])
def test_the_greeting_tells_it_and_all_else_what_the_server_is(tmp_path: Path, version: str) -> None:
    with ServerInProcess(tmp_path, [], loop=uvloop.new_event_loop(), announce_version=version) as server:
        client = server.connect()
        assert client.greeting.startswith(f"Tarantool {version} (Binary) ".encode())
        assert client.call("box.info").data[0]["version"] == "2.11.0-0-iproto"
        assert client.call("box.schema.create_space", "t").ok
        assert client.call("box.snapshot").ok
    files = [*tmp_path.glob("*.snap"), *tmp_path.glob("*.xlog")]
    assert len(files) > 1
    for file in files:
        assert b"\nVersion: 2.11.0-0-iproto\n" in file.read_bytes()


@pytest.mark.parametrize(("version", "is_read"), [("2.11.0", False), ("2.8.4", True), ("3.0.0", True)])
def test_what_tarantool_python_0_5_5_reads_on_python_3(tmp_path: Path, version: str, is_read: bool) -> None:
    """It takes the first 63 characters of `str(greeting)`, of which `b'` are two."""
    with ServerInProcess(tmp_path, [], loop=uvloop.new_event_loop(), announce_version=version) as server:
        greeting = server.connect().greeting
        seen = str(greeting)[:63].partition("(Binary) ")[2].strip()
        try:
            found = uuid.UUID(seen) == server.server.box.uuid
        except ValueError:
            found = False
    assert found == is_read
