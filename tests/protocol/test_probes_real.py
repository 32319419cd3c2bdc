"""A real Tarantool gives the responses in the table of probes."""

import socket

import pytest

from iproto_server.codec import msgpack as codec
from tests.conftest import StartTarantool
from tests.protocol.probes import PROBES, SPACE_ID, Probe
from tests.real_tarantool import GUEST_IS_SUPER

pytestmark = pytest.mark.real_tarantool

SPACE = f"""
local space = box.schema.space.create('t', {{id = {SPACE_ID}}})
space:create_index('pk')
space:replace{{1, 1, 'a'}}
"""
BODY_OR_HEADER = ("Invalid MsgPack - packet", "Invalid MsgPack - missing", "Invalid MsgPack - SQL text")
MISSING = 69
INVALID = 20


def receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        assert chunk, "the connection was closed"
        received += chunk
    return received


def ask(connection: socket.socket, probe: Probe) -> tuple[int, int | None, str]:
    """Send a probe; return the response's sync and, if decoding failed, the error."""
    connection.sendall(b"\xce" + len(probe.frame).to_bytes(4, "big") + probe.frame)
    size = int.from_bytes(receive(connection, 5)[1:], "big")
    answer = receive(connection, size)
    head, body = codec.unpack(answer[:23]), codec.unpack(answer[23:])
    code = head[0] & 0x7FFF if head[0] & 0x8000 else None
    text = body[0x31] if code is not None else ""
    if code == MISSING or (code == INVALID and text.startswith(BODY_OR_HEADER)):
        return head[1], code, text
    return head[1], None, ""


def test_a_real_tarantool_answers_every_probe_so(real_tarantool: StartTarantool) -> None:
    tarantool = real_tarantool(GUEST_IS_SUPER + SPACE)
    with socket.create_connection((tarantool.host, tarantool.port), timeout=10) as connection:
        receive(connection, 128)
        answers = {probe.name: ask(connection, probe) for probe in PROBES}
    assert answers == {probe.name: (probe.sync, probe.code, probe.text) for probe in PROBES}
