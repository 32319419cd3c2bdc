"""The list of the server's options.

The command line, its `--help`, the environment variables and the TOML keys are generated from `OPTIONS`.
Options have the names of Tarantool's `box.cfg` where it has the same option.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from iproto_server.config import option_parsers as values
from iproto_server.password import AUTH_TYPES

ENVIRONMENT_PREFIX = "IPROTO_SERVER_"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of all sources.

    Parameters:
        name: as in `box.cfg` and TOML, with underscores.
        parse: parses the value, or raises ValueError (see `option_parsers`).
        group: its heading in `--help`.
        metavar: placeholder of the value in `--help`; "" for a flag.
        help: one sentence for `--help`.
        many: whether it is a list.
        default: text of the default for `--help`; "": none.
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


_NETWORK, _DATA, _SNAPSHOTS = "Network and access", "Data", "Snapshots"
_MONITORING = "Log and monitoring"

GUEST_MODES = ("auto", "all", "none")
"""Values of the option `guest`; the first is the default."""

MEMTX_MEMORY_MIN = 16 * 1024**2
"""The least value of the option `memtx_memory`: an empty database takes a few megabytes."""

_CENTURY = 100 * 365 * 86400.0
"""The longest time, which Tarantool treats as infinite."""

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
        values.seconds(0, _CENTURY),
        _NETWORK,
        "SECONDS",
        "If guest has no such grant, a connection without a login is closed after this time. 0: never.",
        default="60",
    ),
    Option(
        "frame_timeout",
        values.seconds(0, _CENTURY),
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
        values.seconds(0, _CENTURY),
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
        values.seconds(0, _CENTURY),
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
    Option(
        "log",
        values.path,
        _MONITORING,
        "FILE",
        "Append the log to this file; a relative one is in the work directory, and missing directories are "
        "made. If it is moved away or removed, it is made anew; the call log.rotate "
        "does so at once.",
        default="stderr",
    ),
    Option(
        "too_long_threshold",
        values.seconds(0.01, _CENTURY),
        _MONITORING,
        "SECONDS",
        "Log a warning, with the position in the code, when a request or anything else keeps the event loop "
        "busy for longer than this.",
        default="0.5",
    ),
    Option(
        "log_level",
        values.log_level,
        _MONITORING,
        "LEVEL",
        "Least important level to log: 0 to 7, or fatal, syserror, error, crit, warn, info, verbose, debug.",
        default="info",
    ),
    Option(
        "log_format",
        values.one_of("log format", "plain", "json"),
        _MONITORING,
        "plain|json",
        "Format of the log: one line, or one JSON object, per event.",
        default="plain",
    ),
    Option(
        "graphite",
        values.receiver,
        _MONITORING,
        "HOST:PORT",
        "Send counters to this Graphite (carbon) plain text receiver.",
    ),
    Option(
        "graphite_protocol",
        values.one_of("graphite protocol", "tcp", "udp"),
        _MONITORING,
        "tcp|udp",
        "Protocol for sending counters.",
        default="tcp",
    ),
    Option(
        "graphite_prefix",
        values.prefix,
        _MONITORING,
        "PREFIX",
        "Prefix of the counters' names.",
        default="queue.stats",
    ),
    Option(
        "graphite_interval",
        values.seconds(0.1, 86400),
        _MONITORING,
        "SECONDS",
        "Time between two samples of the counters.",
        default="1",
    ),
    Option(
        "http",
        values.listen,
        _MONITORING,
        "ADDRESS",
        "Serve HTTP on this address: the dashboard at /, metrics for Prometheus at /metrics, /health and "
        "/ready. Written as for --listen, with its TLS parameters, which an address that other machines can "
        "reach needs.",
    ),
    Option(
        "http_host",
        values.host_name,
        _MONITORING,
        "NAME",
        "Name under which browsers reach the dashboard, beside IP addresses, localhost and the machine's "
        "name. May be repeated.",
        many=True,
    ),
    Option(
        "http_behind_proxy",
        values.boolean,
        _MONITORING,
        "",
        "A reverse proxy in front of --http does TLS: serve other machines without it.",
    ),
    Option(
        "metrics_listen",
        values.listen,
        _MONITORING,
        "ADDRESS",
        "Serve the metrics on this address in place of that of --http, and without TLS unless it has TLS "
        "parameters.",
    ),
    Option(
        "metrics_token_file",
        values.path,
        _MONITORING,
        "FILE",
        "Serve the metrics only to clients that send the token in this file, as Authorization: Bearer TOKEN.",
    ),
    Option(
        "metrics_max_queues",
        values.whole(0, 2**31 - 1),
        _MONITORING,
        "COUNT",
        "Maximum number of queues in the metrics for Prometheus; those left out are counted.",
        default="100",
    ),
    Option(
        "instance_name",
        values.instance_name,
        _MONITORING,
        "NAME",
        "Name of this instance: the label alias of the metrics for Prometheus, and which instance of a "
        "YAML file this one is.",
        default="the address of --listen",
    ),
)
