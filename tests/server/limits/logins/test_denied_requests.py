"""What somebody may not do costs the server no more than the bytes that ask for it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from iproto_server.protocol.constants import RequestType
from tests.iproto_client import IprotoClient
from tests.protocol.tarantool15.box15_client import Client15
from tests.running_server import RunningServer
from tests.server.conftest import APPLICATION
from tests.server.login import log_in

MEBIBYTE = 2**20
COUNT = 1_000_000
MAPS = b"\xdd" + struct.pack(">I", COUNT) + b"\x80" * COUNT
"""A million maps: a megabyte on the wire, and more than 60 as values."""

MOST = 24 * MEBIBYTE


def peak_memory(pid: int) -> int:
    """The most memory that a process had since `forget_peak`."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    options = ["--guest", "none", "--max-frame-before-login", "16M", "--listen-1-5", "127.0.0.1:0"]
    applications = [APPLICATION, "tests.server.accounts:app"]
    with RunningServer(tmp_path_factory.mktemp("server"), applications, options) as running:
        yield running


ERROR = b"\xc9" + struct.pack(">I", len(MAPS) + 2) + b"\x03\x81\x00" + MAPS
"""An error that holds them."""

REQUESTS = {
    "AUTH": (RequestType.AUTH, b"\x82\x23\xa1x\x21" + MAPS),
    "ID": (RequestType.ID, b"\x81\x55" + MAPS),
    "CALL": (RequestType.CALL, b"\x82\x22\xa3who\x21" + MAPS),
    "CALL_16": (RequestType.CALL_16, b"\x82\x22\xa3who\x21" + MAPS),
    "EVAL": (RequestType.EVAL, b"\x82\x27\xa1x\x21" + MAPS),
    "EXECUTE": (RequestType.EXECUTE, b"\x82\x40\xa1x\x41" + MAPS),
    "PREPARE": (RequestType.PREPARE, b"\x81\x40" + MAPS),
    "SELECT": (RequestType.SELECT, b"\x83\x10\xcd\x01\x18\x12\x01\x20" + MAPS),
    "SELECT of a view that everybody may read": (
        RequestType.SELECT,
        b"\x83\x10\xcd\x01\x19\x12\x01\x20" + MAPS,
    ),
    "the same with one value": (RequestType.SELECT, b"\x83\x10\xcd\x01\x19\x12\x01\x20\x91" + MAPS),
    "the same with an error": (
        RequestType.SELECT,
        b"\x83\x10\xcd\x01\x19\x12\x01\x20\x91\xc9"
        + struct.pack(">I", len(MAPS) + 2)
        + b"\x03\x81\x00"
        + MAPS,
    ),
    "UPDATE": (RequestType.UPDATE, b"\x83\x10\xcd\x01\x18\x20\x91\x01\x21" + MAPS),
    "UPSERT": (RequestType.UPSERT, b"\x83\x10\xcd\x01\x18\x21\x91\x01\x28" + MAPS),
    "INSERT with metadata": (
        RequestType.INSERT,
        b"\x83\x10\xcd\x01\x18\x21\x91\x01\x2a\xdf" + struct.pack(">I", COUNT // 2) + MAPS[5:],
    ),
}
TEXTS = {
    "AUTH": "authentication request body",
    "ID": "request body",
    "SELECT of a view that everybody may read": r"\(expected \[0..1\], got 1000000\)",
    "the same with one value": "Supplied key type of part 0 does not match",
    "the same with an error": "Supplied key type of part 0 does not match",
    **dict.fromkeys(("EVAL", "EXECUTE", "PREPARE"), "does not support"),
}


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("user", ["guest", "alice"])
def test_its_values_are_not_made(server: RunningServer, name: str, user: str) -> None:
    if user == "alice" and name.startswith("CALL"):
        return  # she may
    kind, body = REQUESTS[name]
    pid = server.process.pid
    with IprotoClient.at(server.address) as client:
        if user != "guest":
            assert log_in(client, user, "secret").ok
        forget_peak(pid)
        before = peak_memory(pid)
        answer = client.request(kind, body)
        assert peak_memory(pid) - before < MOST
        assert client.request(RequestType.PING).ok
    expected = TEXTS.get(name, f"is denied for user '{user}'")
    with pytest.raises(AssertionError, match=expected):
        raise AssertionError(answer.failure[1])


FIELDS_15 = struct.pack("<I", COUNT) + bytes(COUNT)
KEYS_15 = struct.pack("<I", COUNT // 4) + bytes(COUNT)
REQUESTS_15 = {
    "CALL": (22, struct.pack("<I", 0) + b"\x03who" + FIELDS_15),
    "SELECT": (17, struct.pack("<IIII", 280, 0, 0, 1) + KEYS_15),
    "INSERT": (13, struct.pack("<II", 280, 1) + FIELDS_15),
    "UPDATE": (19, struct.pack("<II", 280, 1) + FIELDS_15),
    "DELETE": (21, struct.pack("<II", 280, 1) + FIELDS_15),
}


@pytest.mark.parametrize("name", REQUESTS_15)
def test_nor_are_those_of_1_5(server: RunningServer, name: str) -> None:
    kind, body = REQUESTS_15[name]
    pid = server.process.pid
    port = server.process.wait_for(r"listening on 127.0.0.1:(\d+), protocol of Tarantool 1.5")[1]
    with closing(Client15("127.0.0.1", int(port))) as client:
        forget_peak(pid)
        before = peak_memory(pid)
        answer = client.request(kind, body)
        assert peak_memory(pid) - before < MOST
    assert "is denied for user 'guest'" in answer.message
