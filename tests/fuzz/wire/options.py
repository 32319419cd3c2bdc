"""Addresses and option values: a value, or a ValueError of one line."""

from __future__ import annotations

from typing import Final

from iproto_server.config import option_parsers
from iproto_server.config.address import Address
from tests.fuzz.target import Target

_READERS: Final = (
    option_parsers.application,
    option_parsers.listen,
    option_parsers.receiver,
    option_parsers.path,
    option_parsers.instance_uuid,
    option_parsers.boolean,
    option_parsers.log_level,
    option_parsers.prefix,
    option_parsers.rate,
    option_parsers.whole(-5, 100),
    option_parsers.size(0, 1 << 30),
    option_parsers.seconds(0, 100),
    option_parsers.one_of("a", "b"),
)


def check(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    for read in _READERS:
        try:
            value = read(text)
        except ValueError:
            continue
        if isinstance(value, Address):
            assert Address.parse(str(value)) == value
            assert isinstance(value.is_local, bool)


TARGET: Final = Target(
    check,
    [
        text.encode()
        for text in (
            "3301",
            "*:3301",
            "localhost:1",
            "[::1]:3301",
            "[::ffff:127.0.0.1]:1",
            "[fe80::1%eth0]:1",
            "unix/:/tmp/x.sock",
            "unix:x",
            "256 MiB",
            "1.5",
            "debug",
            "a.b-c",
            "mod.ule:app",
            "3dbe0a5e-5f0d-4f5c-9d5a-0e9f9a3f7f31",
        )
    ],
)
