"""Addresses as they are written in `--listen` and `--graphite`."""

from __future__ import annotations

import pytest

from iproto_server.config.address import Address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("3301", Address(port=3301)),
        ("*:3301", Address(port=3301)),
        ("127.0.0.1:3301", Address("127.0.0.1", 3301)),
        ("localhost:0", Address("localhost", 0)),
        ("queue.example.net:65535", Address("queue.example.net", 65535)),
        ("[::1]:3301", Address("::1", 3301)),
        ("[::]:3301", Address("::", 3301)),
        ("unix:/run/queue.sock", Address(path="/run/queue.sock")),
        ("unix/:/run/queue.sock", Address(path="/run/queue.sock")),
        ("unix:queue.sock", Address(path="queue.sock")),
        ("unix:/run/a:b", Address(path="/run/a:b")),
    ],
)
def test_every_form_is_read(text: str, address: Address) -> None:
    assert Address.parse(text) == address


@pytest.mark.parametrize("text", ["*:3301", "127.0.0.1:3301", "[::1]:3301", "unix:/run/queue.sock"])
def test_an_address_is_written_as_it_is_read(text: str) -> None:
    assert str(Address.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected PORT, HOST:PORT, [IPV6]:PORT or unix:PATH"),
        ("localhost", "expected PORT, HOST:PORT, [IPV6]:PORT or unix:PATH"),
        (":3301", "expected PORT, HOST:PORT, [IPV6]:PORT or unix:PATH"),
        ("guest:secret@localhost:3301", "in brackets"),
        ("guest@localhost:3301", "expected PORT"),
        ("http://localhost:3301", "in brackets"),
        ("localhost:", "a number from 0 to 65535"),
        ("localhost:http", "a number from 0 to 65535"),
        ("localhost:65536", "a number from 0 to 65535"),
        ("localhost:-1", "a number from 0 to 65535"),
        ("localhost:٣٣٠١", "a number from 0 to 65535"),
        ("65536", "a number from 0 to 65535"),
        ("::1:3301", "in brackets, [::1]:3301"),
        ("[nonsense]:3301", "[nonsense] is not an IPv6 address"),
        ("unix:", "needs a path"),
        ("unix:" + "x" * 108, "at most 107 bytes"),
        ("unix:" + "я" * 54, "at most 107 bytes"),
        ("unix:a\0b", "needs a path"),
    ],
)
def test_anything_else_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="is not an address") as caught:
        Address.parse(text)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1:1",
        "127.8.9.10:1",
        "[::1]:1",
        "[::ffff:127.0.0.1]:1",
        "localhost:1",
        "LocalHost:1",
        "unix:/x",
    ],
)
def test_loopback_and_unix_sockets_are_local(text: str) -> None:
    assert Address.parse(text).is_local


@pytest.mark.parametrize(
    "text",
    ["3301", "*:3301", "0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1", "localhost.example.net:1"],
)
def test_what_other_machines_may_reach_is_not_local(text: str) -> None:
    assert not Address.parse(text).is_local
