"""The server's configuration and where it comes from.

An option comes from the first of these sources that has it: command line, environment, file (TOML, or YAML as
of Tarantool 3), sockets that the service manager has passed, default. Lists are replaced, never joined.
"""

from __future__ import annotations

import dataclasses
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iproto_server.config.address import Address as Address  # part of this module's interface
from iproto_server.config.credentials import Credentials
from iproto_server.config.option import ENVIRONMENT_PREFIX, Option
from iproto_server.config.options import GUEST_MODES, OPTIONS
from iproto_server.config.suggestions import did_you_mean
from iproto_server.password import CHAP_SHA1

if TYPE_CHECKING:
    from iproto_server.config.socket_activation import PassedSockets


class ConfigError(Exception):
    """A configuration is invalid or refused; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class GraphiteConfig:
    """Receiver, names and interval of counters.

    Parameters:
        address: the receiver, always a TCP/UDP address with a port.
        protocol: "tcp" or "udp".
        prefix: prefix of all counters' names; a dot is added.
        interval: seconds between two samples.
    """

    address: Address
    protocol: str = "tcp"
    prefix: str = "queue.stats"
    interval: float = 1.0


@dataclass(frozen=True, slots=True)
class Config:
    """The server's configuration.

    Parameters:
        apps: applications to load, each "module:attribute".
        listen: addresses to accept connections on.
        listen_1_5: addresses for clients of Tarantool 1.5's protocol.
        work_dir: directory of the server's files; relative paths of unix sockets start from it.
        wal_dir: directory of the logs, see `log_directory`; None: `work_dir`.
        memtx_dir: directory of the snapshots, see `snapshot_directory`; None: `work_dir`.
        instance_uuid: this instance's identity; None: that of its files, or a new one.
        announce_version: the version in the greeting.
        auth_type: authentication method of new passwords, "chap-sha1" or "pap-sha256".
        allow_guest: the same as `guest` "all".
        guest: guest's rights beyond those granted in the database, one of GUEST_MODES: "all"; "none"; "auto",
            all while only this machine can connect.
        net_msg_max: maximum number of requests in flight in the whole server.
        busy_poll: microseconds for which the event loop looks for the next request before it sleeps; None:
            100 on more than one processor, else 0.
        max_frame: maximum size of a request in bytes; a larger one closes its connection.
        max_frame_before_login: the same for unauthenticated connections.
        login_timeout: seconds after which a connection without a login is closed, if guest has no grant; 0:
            never.
        frame_timeout: maximum gap within a request in seconds; before login, its maximum duration; 0: none.
        max_buffered: maximum bytes of the unfinished requests of all connections; None: twice `max_frame`.
        write_high_water: unsent bytes of a client above which it is not read.
        stop_timeout: seconds that a stop gives to running work.
        max_connections: maximum number of connections; None: as many as there are descriptors for.
        max_connections_per_address: maximum from one address; 0: no limit.
        max_connections_per_user: maximum with a login of one user; 0: no limit.
        idle_timeout: seconds without traffic after which a connection is closed; 0: never.
        max_unsent: unsent bytes of all clients together above which large answers wait.
        read_only: refuse changes of everything but temporary and local spaces.
        wal_mode: when a change is acknowledged: "none", "write" or "fsync".
        wal_max_size: size of a log in bytes at which the next one begins.
        memtx_memory: maximum bytes of rows and indexes; None: no limit.
        force_recovery: start despite damaged files, without the unreadable rows.
        checkpoint_interval: seconds between two snapshots; 0: none at intervals.
        checkpoint_count: number of snapshots kept, with the logs after the oldest.
        checkpoint_wal_threshold: logged bytes since the last snapshot after which the next one is taken.
        snap_io_rate_limit: maximum megabytes (MiB) per second of writing a snapshot; None: no limit.
        lua: whether clients may evaluate Lua code although no Lua file is served.
        lua_memory: maximum bytes of Lua's objects; None: no limit.
        lua_jit: whether LuaJIT compiles code, "on" or "off".
        lua_time_limit: maximum seconds that Lua code runs without a yield; None: no limit.
        too_long_threshold: seconds for which the event loop may be blocked without a warning.
        log: file of the log, see `log_file`; None: stderr.
        log_level: one of LOG_LEVELS.
        log_format: "plain" or "json".
        graphite: the receiver of counters; None: none.
        http: address of the HTTP server; None: none.
        http_host: further names under which browsers reach `http`.
        http_behind_proxy: whether a reverse proxy in front of it does TLS.
        metrics_listen: address of the metrics alone; None: that of `http`.
        metrics_token_file: file with the token for the metrics; None: none.
        metrics_max_queues: maximum number of queues in the metrics.
        instance_name: the label `alias` of the metrics; None: the first address of `listen`.
        credentials: users and roles of a YAML file; None: none.
        warnings: what a YAML file says without an effect, a sentence each.
    """

    apps: tuple[str, ...] = ()
    listen: tuple[Address, ...] = (Address("127.0.0.1", 3301),)
    listen_1_5: tuple[Address, ...] = ()
    work_dir: Path = Path(".")
    wal_dir: Path | None = None
    memtx_dir: Path | None = None
    instance_uuid: uuid.UUID | None = None
    announce_version: str = "2.11.0"
    auth_type: str = CHAP_SHA1
    allow_guest: bool = False
    guest: str = GUEST_MODES[0]
    net_msg_max: int = 768
    busy_poll: int | None = None
    max_frame: int = 256 * 1024**2
    max_frame_before_login: int = 64 * 1024
    login_timeout: float = 60.0
    frame_timeout: float = 60.0
    max_buffered: int | None = None
    write_high_water: int = 1024**2
    stop_timeout: float = 3.0
    max_connections: int | None = None
    max_connections_per_address: int = 0
    max_connections_per_user: int = 0
    idle_timeout: float = 0.0
    max_unsent: int = 256 * 1024**2
    read_only: bool = False
    wal_mode: str = "write"
    wal_max_size: int = 256 * 1024**2
    memtx_memory: int | None = None
    force_recovery: bool = False
    checkpoint_interval: float = 3600.0
    checkpoint_count: int = 2
    checkpoint_wal_threshold: int = 10**18
    snap_io_rate_limit: float | None = None
    lua: bool = False
    lua_memory: int | None = None
    lua_jit: str = "on"
    lua_time_limit: float | None = None
    too_long_threshold: float = 0.5
    log: Path | None = None
    log_level: str = "info"
    log_format: str = "plain"
    graphite: GraphiteConfig | None = None
    http: Address | None = None
    http_host: tuple[str, ...] = ()
    http_behind_proxy: bool = False
    metrics_listen: Address | None = None
    metrics_token_file: Path | None = None
    metrics_max_queues: int = 100
    instance_name: str | None = None
    credentials: Credentials | None = None
    warnings: tuple[str, ...] = ()

    @property
    def http_addresses(self) -> tuple[Address, ...]:
        """The addresses of the HTTP server: `http` first, then that of the metrics alone."""
        return tuple(address for address in (self.http, self.metrics_listen) if address is not None)

    @property
    def http_problem(self) -> str | None:
        """Why HTTP cannot be served like that, in one line; None if it can."""
        address = self.http
        if address is None or (address.is_local and not self.http_behind_proxy):
            return None
        if address.tls is None and not self.http_behind_proxy:
            return (
                f"http {address}: other machines can reach it, so it needs TLS: add ?transport=ssl&…, or give"
                " --http-behind-proxy if a reverse proxy does TLS"
            )
        if self.metrics_listen is None and self.metrics_token_file is None:
            return (
                f"http {address}: other machines can reach the metrics: give --metrics-token-file FILE, or"
                " --metrics-listen ADDRESS for an address of their own"
            )
        return None

    @property
    def all_local(self) -> bool:
        """Whether only this machine can reach the server: all addresses are loopback or unix sockets."""
        return all(address.is_local for address in (*self.listen, *self.listen_1_5))

    @property
    def max_buffered_bytes(self) -> int:
        """Maximum bytes of the unfinished requests of all connections."""
        return 2 * self.max_frame if self.max_buffered is None else self.max_buffered

    @property
    def is_open_to_guest(self) -> bool:
        """Whether guest has all rights, independent of the grants in the database."""
        if self.guest == "auto":
            return self.allow_guest or self.all_local
        return self.guest == "all"

    @property
    def log_file(self) -> Path | None:
        """The file of the log; None: stderr."""
        return None if self.log is None else self.work_dir / self.log

    @property
    def token_file(self) -> Path | None:
        """The file with the token for the metrics; None: none."""
        return None if self.metrics_token_file is None else self.work_dir / self.metrics_token_file

    @property
    def log_directory(self) -> Path:
        """The directory of the logs."""
        return self.work_dir / (self.wal_dir or "")

    @property
    def snapshot_directory(self) -> Path:
        """The directory of the snapshots."""
        return self.work_dir / (self.memtx_dir or "")


def load_config(
    arguments: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
    sockets: PassedSockets | None = None,
    defaults: Config | None = None,
) -> Config:
    """Put a configuration together.

    Parameters:
        arguments: what the command line says, by option name; None and () mean "not given".
        environment: environment variables; empty ones count as not set. Those that Kubernetes sets for a
            service called iproto-server are ignored; other unknown ones with the prefix are mistakes.
        file: a TOML file whose keys are option names, or with the suffix .yaml or .yml a configuration of
            Tarantool 3. The option `instance_name` of the sources above chooses an instance of the latter.
        sockets: the listening sockets that the service manager has passed; they replace the addresses that
            are not given.
        defaults: the options that no source has; its users and roles come after those of the file.

    Returns:
        The configuration, checked.

    Raises:
        ConfigError: a value, a variable's name, a key of the file or the file itself is wrong; the message
            says where it stood.
    """
    _check_variables(environment or {})
    arguments, environment = arguments or {}, environment or {}
    read = _read_file(file, arguments, environment) if file is not None else _File({})
    defaults = defaults or Config()
    credentials = read.credentials
    if defaults.credentials is not None:
        credentials = defaults.credentials.beside(credentials)
    values: dict[str, Any] = {"credentials": credentials, "warnings": read.warnings}
    origins: dict[str, str] = {}
    for option in OPTIONS:
        for origin, written in _written(option, arguments, environment, read.values):
            try:
                values[option.name] = _parse(option, written)
                origins[option.name] = origin
            except ValueError as error:
                raise ConfigError(f"{origin}: {error}") from error
            break
    graphite = _take_graphite(values)
    if sockets is not None:
        values.update(sockets.take_over(origins))
    config = dataclasses.replace(defaults, graphite=graphite, **values)
    _check_directories(config, origins)
    if config.max_buffered_bytes < 2 * config.max_frame:
        raise ConfigError(
            f"{origins['max_buffered']}: {config.max_buffered_bytes} bytes are less than twice max_frame"
        )
    if config.lua_time_limit is not None and config.lua_jit != "off":
        raise ConfigError(f"{origins['lua_time_limit']}: it needs --lua-jit off: compiled code runs on")
    if config.allow_guest and config.guest == "none":
        raise ConfigError(f"{origins['allow_guest']} and {origins['guest']} contradict each other")
    return config


def _check_directories(config: Config, origins: Mapping[str, str]) -> None:
    """They may be made later, but nothing else may be in their place."""
    for name, path in (
        ("work_dir", config.work_dir),
        ("wal_dir", config.log_directory),
        ("memtx_dir", config.snapshot_directory),
    ):
        if name in origins and path.exists() and not path.is_dir():
            raise ConfigError(f'{origins[name]}: "{path}" is not a directory')


def _written(
    option: Option,
    arguments: Mapping[str, object],
    environment: Mapping[str, str],
    file: Mapping[str, tuple[str, object]],
) -> Iterator[tuple[str, object]]:
    """Yield the sources of an option and its values, those of the highest priority first."""
    argument = arguments.get(option.name)
    if argument is not None and argument != ():
        yield option.flag, argument
    variable = environment.get(option.variable, "").strip()
    if variable:
        yield (
            option.variable,
            [part for part in re.split(r"[,\s]+", variable) if part] if option.many else variable,
        )
    if option.name in file:
        yield file[option.name]


def _parse(option: Option, written: object) -> object:
    if not option.many:
        return option.parse(written)
    items = list(written) if isinstance(written, (list, tuple)) else [written]
    if not items:
        raise ValueError("the list is empty")
    parsed = [option.parse(item) for item in items]
    for place, value in enumerate(parsed):
        # Two free ports are two addresses; anything else twice is a slip that would end as "port in use".
        if value in parsed[:place] and not (
            isinstance(value, Address) and not value.path and value.port == 0
        ):
            raise ValueError(f"{value} is given twice")
    return tuple(parsed)


@dataclass(frozen=True, slots=True)
class _File:
    """The contents of a file: options by name with their places, and those that only YAML has."""

    values: Mapping[str, tuple[str, object]]
    credentials: Credentials | None = None
    warnings: tuple[str, ...] = ()


def _read_file(file: Path, arguments: Mapping[str, object], environment: Mapping[str, str]) -> _File:
    if str(file) in ("", "."):
        raise ConfigError("--config: the name of a file is expected: FILE.toml, FILE.yaml or FILE.yml")
    kind = "YAML" if file.suffix in (".yaml", ".yml") else "TOML"
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not a {kind} file: {error}") from error
    return _read_yaml(file, text, arguments, environment) if kind == "YAML" else _read_toml(file, text)


def _read_toml(file: Path, text: str) -> _File:
    import tomllib

    try:
        table: dict[str, object] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = "" if file.suffix == ".toml" else "; the name of a YAML file ends in .yaml or .yml"
        raise ConfigError(f"{file} is not a TOML file: {error}{hint}") from error
    except RecursionError:
        raise ConfigError(f"{file} is not a TOML file: it is nested too deeply") from None
    if not table and file.suffix != ".toml":
        raise ConfigError(
            f"{file} has no options: they are expected in TOML; the name of a YAML file ends in .yaml or .yml"
        )
    names = [option.name for option in OPTIONS]
    for key in table:
        if key not in names:
            raise ConfigError(f'{file}: unknown key "{key}"{did_you_mean(key.replace("-", "_"), names)}')
    return _File({key: (f"{file}: {key}", value) for key, value in table.items()})


def _read_yaml(
    file: Path, text: str, arguments: Mapping[str, object], environment: Mapping[str, str]
) -> _File:
    from iproto_server.config.tarantool3.server_options import read_tarantool_config

    [option] = (option for option in OPTIONS if option.name == "instance_name")
    name = next((str(written) for _, written in _written(option, arguments, environment, {})), None)
    try:
        read = read_tarantool_config(text, name, environment)
    except ValueError as error:
        raise ConfigError(f"{file}: {error}") from error
    values = {option: (f"{file}: {path}", value) for option, (path, value) in read.values.items()}
    return _File(values, read.credentials, tuple(f"{file}: {warning}" for warning in read.warnings))


_OTHER_VARIABLES: Final = ("IPROTO_SERVER_CONFIG",)
"""Variables that are not options of the server."""

SET_BY_KUBERNETES: Final = re.compile(
    r"(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$"
)
"""Ends of the variables that Kubernetes makes of a service's name.

Source: Kubernetes documentation, "Service", discovery by environment variables.
"""


def _check_variables(environment: Mapping[str, str]) -> None:
    names = [*(option.variable for option in OPTIONS), *_OTHER_VARIABLES]
    for variable in environment:
        if (
            variable.startswith(ENVIRONMENT_PREFIX)
            and variable not in names
            and not SET_BY_KUBERNETES.search(variable)
        ):
            raise ConfigError(f"unknown environment variable {variable}{did_you_mean(variable, names)}")


def _take_graphite(values: dict[str, Any]) -> GraphiteConfig | None:
    """Move the graphite_… values into an object of their own; without a receiver they are ignored."""
    address = values.pop("graphite", None)
    rest = {
        name: values.pop("graphite_" + name)
        for name in ("protocol", "prefix", "interval")
        if "graphite_" + name in values
    }
    return None if address is None else GraphiteConfig(address, **rest)
