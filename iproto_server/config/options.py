"""The list of the server's options.

The command line, its `--help`, the environment variables and the TOML keys are generated from `OPTIONS`.
Options have the names of Tarantool's `box.cfg` where it has the same option.
"""

from __future__ import annotations

from iproto_server.config import option_parsers as values
from iproto_server.config.lua_options import LUA_OPTIONS
from iproto_server.config.monitoring_options import MONITORING_OPTIONS
from iproto_server.config.option import CENTURY, Option
from iproto_server.password import AUTH_TYPES

_NETWORK, _DATA, _SNAPSHOTS = "Network and access", "Data", "Snapshots"

GUEST_MODES = ("auto", "all", "none")
"""Values of the option `guest`; the first is the default."""

MEMTX_MEMORY_MIN = 16 * 1024**2
"""The least value of the option `memtx_memory`: an empty database takes a few megabytes."""

OPTIONS: tuple[Option, ...] = (
    Option("apps", values.application, "", "MODULE:APP", "Applications to load.", many=True),
    Option(
        "listen",
        values.listen,
        _NETWORK,
        "ADDRESS",
        "Accept connections on this address: HOST:PORT, [IPV6]:PORT, PORT for all interfaces, or unix:PATH. "
        "Port 0 selects a free port, which is logged. May be repeated. TLS parameters follow the address: "
        "?transport=ssl&ssl_key_file=FILE&ssl_cert_file=FILE, and ssl_ca_file, ssl_ciphers, ssl_password, "
        "ssl_password_file. unix:PATH?mode=0660 sets the permissions of the socket.",
        many=True,
        default="127.0.0.1:3301",
    ),
    Option(
        "listen_1_5",
        values.listen,
        _NETWORK,
        "ADDRESS",
        "Accept clients of Tarantool 1.5's binary protocol on this address, written as for --listen. They "
        "have the rights of guest. May be repeated.",
        many=True,
        default="none",
    ),
    Option(
        "announce_version",
        values.announced_version,
        _NETWORK,
        "VERSION",
        "The version of Tarantool in the greeting, on which the features of some clients depend. It has no "
        "other effect.",
        default="2.11.0",
    ),
    Option(
        "auth_type",
        values.one_of("authentication method", *AUTH_TYPES),
        _NETWORK,
        "METHOD",
        "Authentication method of new passwords: chap-sha1, or pap-sha256 (over TLS and unix sockets only).",
        default=AUTH_TYPES[0],
    ),
    Option(
        "allow_guest",
        values.boolean,
        _NETWORK,
        "",
        "Give guest, which needs no password, all rights even if other machines can connect: the same as "
        "--guest all.",
    ),
    Option(
        "guest",
        values.one_of("mode of guest", *GUEST_MODES),
        _NETWORK,
        "|".join(GUEST_MODES),
        "Rights of guest, which needs no password, beyond those granted in the database: all, none, or auto, "
        "which is all if every address is loopback or a unix socket, and none otherwise.",
        default=GUEST_MODES[0],
    ),
    Option(
        "net_msg_max",
        values.whole(2, 2**31 - 1),
        _NETWORK,
        "COUNT",
        "Maximum number of requests in flight in the whole server, without calls that wait for others.",
        default="768",
    ),
    Option(
        "busy_poll",
        values.whole(0, 1_000_000),
        _NETWORK,
        "MICROSECONDS",
        "Look for the next request for so long before the event loop sleeps, if clients send theirs right "
        "after responses. 0: never.",
        default="100, or 0 on a single processor",
    ),
    Option(
        "max_frame",
        values.size(1024, 2**31),
        _NETWORK,
        "BYTES",
        "Maximum size of a request; a larger one gets an error, and its connection is closed.",
        default="256M",
    ),
    Option(
        "max_frame_before_login",
        values.size(1024, 2**31),
        _NETWORK,
        "BYTES",
        "The same before login, if guest has no grant beyond those of the role public.",
        default="64K",
    ),
    Option(
        "login_timeout",
        values.seconds(0, CENTURY),
        _NETWORK,
        "SECONDS",
        "If guest has no such grant, a connection without a login is closed after this time. 0: never.",
        default="60",
    ),
    Option(
        "frame_timeout",
        values.seconds(0, CENTURY),
        _NETWORK,
        "SECONDS",
        "Maximum gap within a request before its connection is closed; before login, maximum duration of a "
        "request. 0: none.",
        default="60",
    ),
    Option(
        "max_buffered",
        values.size(2048, 2**63 - 1),
        _NETWORK,
        "BYTES",
        "Maximum size of the unfinished requests of all connections; at least twice --max-frame. Above it, "
        "connections are closed, those before login first, then the largest. An eighth of it is for those "
        "before login.",
        default="twice --max-frame",
    ),
    Option(
        "write_high_water",
        values.size(1024, 2**31 - 1),
        _NETWORK,
        "BYTES",
        "Unsent bytes of a client above which the server stops reading from it.",
        default="1M",
    ),
    Option(
        "max_unsent",
        values.size(1024**2, 2**63 - 1),
        _NETWORK,
        "BYTES",
        "Unsent bytes of all clients together above which SELECTs with large answers wait; one at a time "
        "proceeds.",
        default="256M",
    ),
    Option(
        "stop_timeout",
        values.seconds(0, 86400),
        _NETWORK,
        "SECONDS",
        "Time that a stop gives to running procedures, background tasks, and clients with unread responses. "
        "Then they are cancelled or disconnected. 0: none.",
        default="3",
    ),
    Option(
        "max_connections",
        values.whole(1, 2**31 - 1),
        _NETWORK,
        "COUNT",
        "Maximum number of connections; further clients get an error and are disconnected. The limit of "
        "descriptors (ulimit -n) is raised accordingly if the system allows it.",
        default="the limit of descriptors, less 64",
    ),
    Option(
        "max_connections_per_address",
        values.whole(0, 2**31 - 1),
        _NETWORK,
        "COUNT",
        "Maximum number of connections from one address; unix sockets are not counted. 0: no limit.",
        default="no limit",
    ),
    Option(
        "max_connections_per_user",
        values.whole(0, 2**31 - 1),
        _NETWORK,
        "COUNT",
        "Maximum number of connections on which one user has logged in; guest is not counted. 0: no limit.",
        default="no limit",
    ),
    Option(
        "idle_timeout",
        values.seconds(0, CENTURY),
        _NETWORK,
        "SECONDS",
        "Close a connection without any traffic for this time, unless it has requests in flight or "
        "subscriptions. A client that works on a task may be silent for long. 0: never.",
        default="never",
    ),
    Option(
        "work_dir",
        values.path,
        _DATA,
        "DIR",
        "Directory of the server's files, created if missing; relative paths of other options "
        "(--wal-dir, --memtx-dir, unix:) start from it.",
        default="the current one",
    ),
    Option(
        "wal_dir",
        values.path,
        _DATA,
        "DIR",
        "Directory of the write-ahead log (.xlog files). Only one server at a time may use it.",
        default="--work-dir",
    ),
    Option(
        "wal_mode",
        values.one_of("wal mode", "none", "write", "fsync"),
        _DATA,
        "MODE",
        "When a change is acknowledged: write, when the operating system has it (survives a crash of the "
        "server); fsync, when the disk has it (survives a crash of the machine); none, at once and without a "
        "log (any stop loses all changes since the last snapshot).",
        default="write",
    ),
    Option(
        "wal_max_size",
        values.size(2, 2**63 - 1),
        _DATA,
        "BYTES",
        "Size of a log file at which the next one begins.",
        default="256M",
    ),
    Option(
        "memtx_memory",
        values.size(MEMTX_MEMORY_MIN, 2**63 - 1),
        _DATA,
        "BYTES",
        "Maximum memory of rows and indexes; changes that exceed it get an error. Recovery may exceed it. "
        "The last sixteenth, 4M at most, is for changes of existing rows. Needs the compiled modules.",
        default="no limit",
    ),
    Option(
        "force_recovery",
        values.boolean,
        _DATA,
        "",
        "Start despite damaged files: skip unreadable parts, and log them.",
    ),
    Option(
        "read_only",
        values.boolean,
        _DATA,
        "",
        "Refuse changes, except of temporary and local spaces, and those of applications' setups.",
    ),
    Option(
        "instance_uuid",
        values.instance_uuid,
        _DATA,
        "UUID",
        "The instance's identity, in its files and the greeting; that of a database never changes.",
        default="that of the files, or a new one",
    ),
    Option(
        "memtx_dir",
        values.path,
        _SNAPSHOTS,
        "DIR",
        "Directory of the snapshots (.snap files).",
        default="--work-dir",
    ),
    Option(
        "checkpoint_interval",
        values.seconds(0, CENTURY),
        _SNAPSHOTS,
        "SECONDS",
        "Time between two snapshots; none is taken if nothing has changed. 0: none at intervals.",
        default="3600",
    ),
    Option(
        "checkpoint_wal_threshold",
        values.size(1, 2**63 - 1),
        _SNAPSHOTS,
        "BYTES",
        "Take a snapshot when the log has grown by more than this since the last one.",
        default="10^18, which is never",
    ),
    Option(
        "checkpoint_count",
        values.whole(1, 2**31 - 1),
        _SNAPSHOTS,
        "COUNT",
        "Snapshots to keep, with the logs after the oldest of them; older files are removed.",
        default="2",
    ),
    Option(
        "snap_io_rate_limit",
        values.rate,
        _SNAPSHOTS,
        "MB",
        "Maximum rate of writing snapshots, in megabytes (MiB) per second. 0: no limit.",
        default="no limit",
    ),
    *LUA_OPTIONS,
    *MONITORING_OPTIONS,
)
