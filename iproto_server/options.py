"""The list of the server's options, and how each one's value is read.

`OPTIONS` is the one place where they are named: the command line and its `--help` are generated from it, and
so are the names of the environment variables and of the TOML keys. They are named as in Tarantool's `box.cfg`
where it has the same one.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from iproto_server.address import Address

ENVIRONMENT_PREFIX = "IPROTO_SERVER_"

#: Names of Tarantool's log levels; a level's number is its place here.
LOG_LEVELS = ("fatal", "syserror", "error", "crit", "warn", "info", "verbose", "debug")


@dataclass(frozen=True, slots=True)
class Option:
    """One option, wherever it is written.

    Parameters:
        name: as in `box.cfg` and TOML, with underscores.
        parse: makes the value of what was written (text, or a TOML value); raises ValueError with a one-line
            reason.
        group: the heading it stands under in `--help`.
        metavar: what stands for the value in `--help`; "" for a flag.
        help: one sentence for `--help`.
        many: whether it is a list.
        default: the default's text for `--help`; "" shows none.
    """

    name: str
    parse: Callable[[object], object]
    group: str
    metavar: str
    help: str
    many: bool = False
    default: str = ""

    @property
    def flag(self) -> str:
        """The option on the command line, `--work-dir`; applications are plain arguments, `MODULE:APP`."""
        return "MODULE:APP" if self.name == "apps" else "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable: `IPROTO_SERVER_WORK_DIR`."""
        return ENVIRONMENT_PREFIX + self.name.upper()


def parse_size(value: object) -> int:
    """Read a number of bytes: 16320, "16320", "64K", "256 MiB", "1G". K, M and G are powers of 1024.

    Raises:
        ValueError: it is not a number of bytes.
    """
    match = re.fullmatch(r"([0-9]+)\s*(?:([kmg]?)(?:i?b)?)", str(value).strip(), re.IGNORECASE)
    if not match or isinstance(value, bool):
        raise ValueError(f"{_shown(value)} is not a number of bytes, such as 16320, 64K or 256M")
    return int(match[1]) << 10 * " KMG".index(match[2].upper() or " ")


def _shown(value: object) -> str:
    return (
        f'"{value}"'
        if isinstance(value, str)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{_shown(value)} is not a text" if value != "" else "the value is empty")
    return value


def _application(value: object) -> str:
    text = _text(value)
    if not re.fullmatch(r"[^\s:]+:[^\s:]+", text):
        raise ValueError(f'"{text}" is not an application: expected MODULE:ATTRIBUTE')
    return text


def _listen(value: object) -> Address:
    # A bare port is a number in TOML.
    return Address.parse(
        str(value) if isinstance(value, int) and not isinstance(value, bool) else _text(value)
    )


def _receiver(value: object) -> Address:
    address = Address.parse(_text(value))
    if not address.host or not address.port:
        raise ValueError(f'"{value}" is not a receiver: expected HOST:PORT')
    return address


def _directory(value: object) -> Path:
    path = Path(_text(value))
    if path.exists() and not path.is_dir():
        raise ValueError(f'"{path}" is not a directory')
    return path


def _instance_uuid(value: object) -> uuid.UUID:
    try:
        parsed = uuid.UUID(_text(value))
    except ValueError:
        raise ValueError(f"{_shown(value)} is not a UUID") from None
    if not parsed.int:
        raise ValueError("the UUID of all zeros cannot be an instance's")
    return parsed


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    lowered = value.lower() if isinstance(value, str) else ""
    if lowered in ("1", "true", "yes", "on"):
        return True
    if lowered in ("0", "false", "no", "off"):
        return False
    raise ValueError(f"{_shown(value)} is neither true nor false")


def _whole(low: int, high: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if isinstance(value, bool) or not re.fullmatch(r"-?[0-9]{1,18}", str(value)):
            raise ValueError(f"{_shown(value)} is not a whole number")
        number = int(str(value))
        if not low <= number <= high:
            raise ValueError(f"{number} is out of bounds: from {low} to {high}")
        return number

    return parse


def _size(low: int, high: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        size = parse_size(value)
        if not low <= size <= high:
            raise ValueError(f"{size} bytes is out of bounds: from {low} to {high}")
        return size

    return parse


def _one_of(*choices: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        text = str(value).lower()
        if text not in choices:
            raise ValueError(f"{_shown(value)} is none of {', '.join(choices)}")
        return text

    return parse


def _wal_mode(value: object) -> str:
    mode = _one_of("none", "write", "fsync")(value)
    if mode != "none":
        raise ValueError(
            f'"{mode}" is not available yet: this version has no write-ahead log, only "none" works'
        )
    return mode


def _log_level(value: object) -> str:
    text = "warn" if str(value).lower() == "warning" else str(value).lower()
    if text in LOG_LEVELS:
        return text
    if not isinstance(value, bool) and re.fullmatch(r"[0-7]", text):
        return LOG_LEVELS[int(text)]
    raise ValueError(f"{_shown(value)} is not a log level: expected 0 to 7 or one of {', '.join(LOG_LEVELS)}")


def _prefix(value: object) -> str:
    text = _text(value)
    if not re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", text):
        raise ValueError(
            f'"{text}" is not a metric prefix: letters, digits, "_" and "-", in parts with dots between'
        )
    return text


def _interval(value: object) -> float:
    try:
        seconds = math.nan if isinstance(value, bool) else float(str(value))
    except ValueError:
        seconds = math.nan
    if not 0.1 <= seconds <= 86400:
        raise ValueError(f"{_shown(value)} is not an interval: expected seconds, from 0.1 to 86400")
    return seconds


_NETWORK, _DATA, _MONITORING = "Network and access", "Data", "Log and monitoring"

OPTIONS: tuple[Option, ...] = (
    Option("apps", _application, "", "MODULE:APP", "Applications to load.", many=True),
    Option(
        "listen",
        _listen,
        _NETWORK,
        "ADDRESS",
        "Accept connections here: HOST:PORT, [IPV6]:PORT, PORT alone for every interface, or unix:PATH. "
        "Port 0 takes a free one and logs it. May be given several times.",
        many=True,
        default="127.0.0.1:3301",
    ),
    Option(
        "allow_guest",
        _boolean,
        _NETWORK,
        "",
        "Let guest, who needs no password, do everything even when other machines can connect. Without it "
        "guest has all rights only while every address is loopback or a unix socket.",
    ),
    Option(
        "net_msg_max",
        _whole(2, 2**31 - 1),
        _NETWORK,
        "COUNT",
        "Requests in flight in the whole server, at most.",
        default="768",
    ),
    Option(
        "max_frame",
        _size(1024, 2**31),
        _NETWORK,
        "BYTES",
        "Largest request; a larger one gets an error and its connection is closed.",
        default="256M",
    ),
    Option(
        "write_high_water",
        _size(1024, 2**31 - 1),
        _NETWORK,
        "BYTES",
        "A client that leaves more than this unread is not read from until it catches up.",
        default="1M",
    ),
    Option(
        "work_dir",
        _directory,
        _DATA,
        "DIR",
        "Directory of the server's files, made when it is not there; relative unix: paths start from it.",
        default="the current one",
    ),
    Option(
        "wal_mode",
        _wal_mode,
        _DATA,
        "MODE",
        "How a write is made durable. This version knows only none: data lasts as long as the server runs.",
        default="none",
    ),
    Option(
        "instance_uuid",
        _instance_uuid,
        _DATA,
        "UUID",
        "The instance's identity, shown in the greeting.",
        default="a new one",
    ),
    Option(
        "log_level",
        _log_level,
        _MONITORING,
        "LEVEL",
        "How much to log: 0 to 7, or fatal, syserror, error, crit, warn, info, verbose, debug.",
        default="info",
    ),
    Option(
        "log_format",
        _one_of("plain", "json"),
        _MONITORING,
        "plain|json",
        "One line, or one JSON object, per event.",
        default="plain",
    ),
    Option(
        "graphite",
        _receiver,
        _MONITORING,
        "HOST:PORT",
        "Send counters to this Graphite (carbon) plain text receiver.",
    ),
    Option(
        "graphite_protocol", _one_of("tcp", "udp"), _MONITORING, "tcp|udp", "How to send them.", default="tcp"
    ),
    Option(
        "graphite_prefix",
        _prefix,
        _MONITORING,
        "PREFIX",
        "What their names begin with.",
        default="queue.stats",
    ),
    Option("graphite_interval", _interval, _MONITORING, "SECONDS", "How often to send them.", default="1"),
)
