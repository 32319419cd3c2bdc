"""The list of the server's options.

`OPTIONS` is the one place where they are named: the command line and its `--help` are generated from it, and
so are the names of the environment variables and of the TOML keys. They are named as in Tarantool's `box.cfg`
where it has the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from iproto_server.config import option_parsers as values
from iproto_server.password import AUTH_TYPES

ENVIRONMENT_PREFIX = "IPROTO_SERVER_"


@dataclass(frozen=True, slots=True)
class Option:
    """One option, wherever it is written.

    Parameters:
        name: as in `box.cfg` and TOML, with underscores.
        parse: makes the value of what was written, or raises ValueError (see `option_values`).
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


_NETWORK, _DATA, _SNAPSHOTS = "Network and access", "Data", "Snapshots"
_MONITORING = "Log and monitoring"

GUEST_MODES = ("auto", "all", "none")
"""Who decides about guest's rights; the first is the default."""

_CENTURY = 100 * 365 * 86400.0
"""As long as a time can be: what Tarantool takes for endless."""

OPTIONS: tuple[Option, ...] = (
    Option("apps", values.application, "", "MODULE:APP", "Applications to load.", many=True),
    Option(
        "listen",
        values.listen,
        _NETWORK,
        "ADDRESS",
        "Accept connections here: HOST:PORT, [IPV6]:PORT, PORT alone for every interface, or unix:PATH. "
        "Port 0 takes a free one and logs it. May be given several times. Behind it, TLS: "
        "?transport=ssl&ssl_key_file=FILE&ssl_cert_file=FILE, and ssl_ca_file, ssl_ciphers, ssl_password, "
        "ssl_password_file. Behind unix:PATH, ?mode=0660 says who may connect.",
        many=True,
        default="127.0.0.1:3301",
    ),
    Option(
        "listen_1_5",
        values.listen,
        _NETWORK,
        "ADDRESS",
        "Accept clients that speak Tarantool 1.5's binary protocol here; addresses as of --listen. They have "
        "the rights of guest. May be given several times.",
        many=True,
        default="none",
    ),
    Option(
        "announce_version",
        values.announced_version,
        _NETWORK,
        "VERSION",
        "The version of Tarantool that the greeting tells clients, by which some of them switch features on; "
        "nothing else depends on it.",
        default="2.11.0",
    ),
    Option(
        "auth_type",
        values.one_of(*AUTH_TYPES),
        _NETWORK,
        "METHOD",
        "How users prove the passwords that are set from now on: chap-sha1, or pap-sha256, which works over "
        "TLS and unix sockets only.",
        default=AUTH_TYPES[0],
    ),
    Option(
        "allow_guest",
        values.boolean,
        _NETWORK,
        "",
        "Let guest, who needs no password, do everything even when other machines can connect: the same as "
        "--guest all.",
    ),
    Option(
        "guest",
        values.one_of(*GUEST_MODES),
        _NETWORK,
        "|".join(GUEST_MODES),
        "Rights of guest, who needs no password, beyond those granted in the database: all, none, or auto, "
        "which is all while every address is loopback or a unix socket, and none otherwise.",
        default=GUEST_MODES[0],
    ),
    Option(
        "net_msg_max",
        values.whole(2, 2**31 - 1),
        _NETWORK,
        "COUNT",
        "Requests in flight in the whole server, at most.",
        default="768",
    ),
    Option(
        "max_frame",
        values.size(1024, 2**31),
        _NETWORK,
        "BYTES",
        "Largest request; a larger one gets an error and its connection is closed.",
        default="256M",
    ),
    Option(
        "max_frame_before_login",
        values.size(1024, 2**31),
        _NETWORK,
        "BYTES",
        "The same before login, where guest has no grant beyond those of the role public.",
        default="64K",
    ),
    Option(
        "login_timeout",
        values.seconds(0, _CENTURY),
        _NETWORK,
        "SECONDS",
        "Where guest has no such grant, a connection is closed when nobody has logged in by then. "
        "0 is never.",
        default="60",
    ),
    Option(
        "frame_timeout",
        values.seconds(0, _CENTURY),
        _NETWORK,
        "SECONDS",
        "A connection is closed when no byte of an unfinished request has come for so long; before login, "
        "when the request is not finished by then. 0 is never.",
        default="60",
    ),
    Option(
        "max_buffered",
        values.size(2048, 2**63 - 1),
        _NETWORK,
        "BYTES",
        "Unfinished requests of all connections together; at least twice --max-frame. Where they are more, "
        "connections are closed, those before login first, then the largest. An eighth is for those before "
        "login.",
        default="twice --max-frame",
    ),
    Option(
        "write_high_water",
        values.size(1024, 2**31 - 1),
        _NETWORK,
        "BYTES",
        "A client that leaves more than this unread is not read from until it catches up.",
        default="1M",
    ),
    Option(
        "max_unsent",
        values.size(1024**2, 2**63 - 1),
        _NETWORK,
        "BYTES",
        "While all clients together leave more than this unread, SELECTs with large answers wait; one at a "
        "time is let go.",
        default="256M",
    ),
    Option(
        "stop_timeout",
        values.seconds(0, 86400),
        _NETWORK,
        "SECONDS",
        "Time that a stop gives running procedures, background tasks, and clients that have yet to read. What"
        " is left then is cancelled and cut off; 0 waits for nobody.",
        default="3",
    ),
    Option(
        "max_connections",
        values.whole(1, 2**31 - 1),
        _NETWORK,
        "COUNT",
        "Connections at a time; further clients are told so and sent away. The limit of descriptors "
        "(ulimit -n) is raised for them if the system allows it.",
        default="the limit of descriptors, less 64",
    ),
    Option(
        "max_connections_per_address",
        values.whole(0, 2**31 - 1),
        _NETWORK,
        "COUNT",
        "Connections at a time from one address; those of unix sockets are not counted. 0 is no limit.",
        default="no limit",
    ),
    Option(
        "max_connections_per_user",
        values.whole(0, 2**31 - 1),
        _NETWORK,
        "COUNT",
        "Connections at a time on which one user has logged in; guest is not counted. 0 is no limit.",
        default="no limit",
    ),
    Option(
        "idle_timeout",
        values.seconds(0, _CENTURY),
        _NETWORK,
        "SECONDS",
        "Close a connection from which nothing has come for so long, unless it has requests in flight or "
        "subscriptions. Who has taken a task is silent while working on it. 0 closes none.",
        default="never",
    ),
    Option(
        "work_dir",
        values.path,
        _DATA,
        "DIR",
        "Directory of the server's files, made when it is not there; relative paths of other options "
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
        values.one_of("none", "write", "fsync"),
        _DATA,
        "MODE",
        "When a change is answered: write, once the operating system has it (a crash of the server loses "
        "nothing); fsync, once the disk has it (nor does one of the machine); none, at once and without a "
        "log (all since the last snapshot is lost).",
        default="write",
    ),
    Option(
        "wal_max_size",
        values.size(2, 2**63 - 1),
        _DATA,
        "BYTES",
        "A log file that has grown to this is closed and the next one begun.",
        default="256M",
    ),
    Option(
        "force_recovery",
        values.boolean,
        _DATA,
        "",
        "Start although files are damaged: skip what cannot be read, and say what was skipped.",
    ),
    Option(
        "read_only",
        values.boolean,
        _DATA,
        "",
        "Refuse changes, except of temporary and local spaces. What applications do in their setup is done.",
    ),
    Option(
        "instance_uuid",
        values.instance_uuid,
        _DATA,
        "UUID",
        "The instance's identity, as its files and the greeting show it; that of a database never changes.",
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
        "Time between two snapshots; none is made when nothing has changed. 0 makes none by time.",
        default="3600",
    ),
    Option(
        "checkpoint_wal_threshold",
        values.size(1, 2**63 - 1),
        _SNAPSHOTS,
        "BYTES",
        "Make a snapshot when the log has grown by more than this since the last one.",
        default="10^18, which is never",
    ),
    Option(
        "checkpoint_count",
        values.whole(1, 2**31 - 1),
        _SNAPSHOTS,
        "COUNT",
        "Snapshots to keep, with the logs behind the oldest of them; older files are removed.",
        default="2",
    ),
    Option(
        "snap_io_rate_limit",
        values.rate,
        _SNAPSHOTS,
        "MB",
        "Write snapshots no faster than so many megabytes (MiB) per second; 0 is no limit.",
        default="no limit",
    ),
    Option(
        "log_level",
        values.log_level,
        _MONITORING,
        "LEVEL",
        "How much to log: 0 to 7, or fatal, syserror, error, crit, warn, info, verbose, debug.",
        default="info",
    ),
    Option(
        "log_format",
        values.one_of("plain", "json"),
        _MONITORING,
        "plain|json",
        "One line, or one JSON object, per event.",
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
        values.one_of("tcp", "udp"),
        _MONITORING,
        "tcp|udp",
        "How to send them.",
        default="tcp",
    ),
    Option(
        "graphite_prefix",
        values.prefix,
        _MONITORING,
        "PREFIX",
        "What their names begin with.",
        default="queue.stats",
    ),
    Option(
        "graphite_interval",
        values.seconds(0.1, 86400),
        _MONITORING,
        "SECONDS",
        "How often to send them.",
        default="1",
    ),
)
