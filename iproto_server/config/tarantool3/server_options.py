"""This server's options from a Tarantool 3 configuration file.

Source: Tarantool 3 manual, "Configuration reference".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

from iproto_server.config.credentials import Credentials
from iproto_server.config.suggestions import did_you_mean
from iproto_server.config.tarantool3.cluster_file import Found, InstanceOptions, Key, read_instance
from iproto_server.config.tarantool3.credentials_section import read_credentials
from iproto_server.config.tarantool3.schema import CLUSTER, REPLICASET, MapOf, Mapped, Node, NoEffect, Refused
from iproto_server.config.tarantool3.units import without_unit

METRICS_ROLE: Final = "roles.metrics-export"
"""The role that serves metrics over HTTP. Source: README of tarantool/metrics-export-role."""

METRICS_PATHS: Final = ("/metrics", "/metrics/prometheus")

_TLS: Final = ("transport", "ssl_key_file", "ssl_cert_file", "ssl_ca_file", "ssl_ciphers", "ssl_password")
_PARAMETERS: Final = (*_TLS, "ssl_password_file")
_FAILOVER: Final = ("off", "manual")
_NOT_REPLICATED: Final = "there is no replication"


@dataclass(frozen=True, slots=True)
class TarantoolConfig:
    """The contents of a file.

    Parameters:
        values: the options by name: where the file has them, and their values before they are parsed.
        credentials: the users and roles; None: none.
        warnings: what has no effect, a sentence each.
    """

    values: Mapping[str, tuple[str, object]]
    credentials: Credentials | None = None
    warnings: tuple[str, ...] = ()


def read_tarantool_config(text: str, name: str | None, environment: Mapping[str, str]) -> TarantoolConfig:
    """Read a Tarantool 3 configuration file.

    Directories that are not given are those of Tarantool, `var/lib/NAME` below the work directory, so that
    the server finds the same data.

    Parameters:
        text: the file.
        name: the instance; None: the only one of the file.
        environment: the variables that `config.context` may name.

    Returns:
        What it says about the instance.

    Raises:
        ValueError: something in it is unknown, unsupported or wrong; the message begins with its place.
    """
    return _Reader(read_instance(text, name, environment)).read()


@dataclass(slots=True)
class _Reader:
    options: InstanceOptions
    values: dict[str, tuple[str, object]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def read(self) -> TarantoolConfig:
        found = self.options.found
        for key, each in found.items():
            self._apply(_rule(key), each)
        self._listen(found.get(("iproto", "listen")))
        self._log(found.get(("log", "to")), found.get(("log", "file")))
        self._mode(found.get(("database", "mode")), found.get(("replication", "failover")))
        self._guest(found.get(("security", "disable_guest")))
        self._metrics(found)
        self._directories()
        return TarantoolConfig(self.values, read_credentials(found), tuple(self.warnings))

    def _apply(self, rule: Node, found: Found) -> None:
        """Take over an option that needs no interpretation."""
        if isinstance(rule, Mapped):
            try:
                self.values[rule.option] = (found.path, without_unit(found.value, rule.unit))
            except ValueError as error:
                raise ValueError(f"{found.path}: {error}") from error
        elif isinstance(rule, NoEffect | Refused) and found.value not in rule.usual:
            if isinstance(rule, Refused):
                raise ValueError(f"{found.path}: it is not supported: {rule.reason}")
            self._warn(found, rule.reason)

    def _warn(self, found: Found, reason: str) -> None:
        self.warnings.append(f"{found.path} has no effect: {reason}")

    def _listen(self, found: Found | None) -> None:
        if found is None:
            return
        if not isinstance(found.value, list):
            raise ValueError(f"{found.path}: a list is expected, such as [{{uri: '127.0.0.1:3301'}}]")
        addresses = [
            _address(entry, f"{found.path}[{number}]") for number, entry in enumerate(found.value, start=1)
        ]
        self.values["listen"] = (found.path, addresses)

    def _log(self, to: Found | None, file: Found | None) -> None:
        target = "stderr" if to is None else to.value
        if target == "file":
            default = Found("log.file", f"var/log/{self.options.name or ''}/tarantool.log")
            written = file or default
            self.values["log"] = (written.path, written.value)
        elif to is not None and target in ("pipe", "syslog"):
            raise ValueError(f"{to.path}: it is not supported: the log goes to stderr or to a file")
        elif to is not None and target != "stderr":
            raise ValueError(f"{to.path}: stderr or file is expected")
        elif file is not None:
            self._warn(file, "log.to is not file")

    def _mode(self, mode: Found | None, failover: Found | None) -> None:
        """Decide whether the instance is read-only, by the rules of Tarantool's failover modes."""
        options = self.options
        # YAML 1.1 reads a plain `off` as false.
        chosen = "off" if failover is None or failover.value is False else failover.value
        if failover is not None and chosen not in _FAILOVER:
            raise ValueError(f"{failover.path}: it is not supported: off or manual is expected")
        others = [name for name in options.members if name != options.name]
        if others:
            self.warnings.append(
                f"the replicaset {options.replicaset} has other instances ({', '.join(others)}), which do not"
                f" get the data of this one: {_NOT_REPLICATED}"
            )
        leader = options.found.get(("leader",))
        if chosen == "manual":
            path = failover.path if failover else ""
            if mode is not None:
                self._warn(mode, "replication.failover is manual")
            is_leader = leader is not None and leader.value == options.name
            self.values["read_only"] = (leader.path if leader else path, not is_leader)
            return
        if leader is not None:
            self._warn(leader, "replication.failover is not manual")
        if mode is not None:
            if mode.value not in ("ro", "rw"):
                raise ValueError(f"{mode.path}: ro or rw is expected")
            self.values["read_only"] = (mode.path, mode.value == "ro")
        elif others:
            self.values["read_only"] = ("database.mode", True)

    def _guest(self, found: Found | None) -> None:
        if found is None:
            return
        if not isinstance(found.value, bool):
            raise ValueError(f"{found.path}: true or false is expected")
        if found.value:
            self.values["guest"] = (found.path, "none")

    def _metrics(self, found: Mapping[Key, Found]) -> None:
        for key, label in found.items():
            if key[:2] == ("metrics", "labels"):
                if key[2] != "alias":
                    raise ValueError(f"{label.path}: it is not supported: the only label is alias")
                self.values["instance_name"] = (label.path, label.value)
        if self.options.name is not None:
            self.values.setdefault("instance_name", ("groups", self.options.name))
        roles, settings = found.get(("roles",)), found.get(("roles_cfg",))
        has_role = roles is not None and METRICS_ROLE in _roles(roles)
        if settings is None:
            return
        if not isinstance(settings.value, dict):
            raise ValueError(f"{settings.path}: a mapping of names to values is expected")
        for name, value in settings.value.items():
            entry = Found(f"{settings.path}.{name}", value)
            if name != METRICS_ROLE or not has_role:
                self._warn(entry, f"{name} is not among the roles")
            else:
                self.values["metrics_listen"] = _metrics_address(entry)

    def _directories(self) -> None:
        """Let directories be those of Tarantool where the file does not say otherwise."""
        name = self.options.name
        if name is not None:
            for option, path in (("wal_dir", "wal.dir"), ("memtx_dir", "snapshot.dir")):
                self.values.setdefault(option, (path, str(Path("var/lib") / name)))


def _rule(key: Key) -> Node:
    """The rule of an option."""
    node: Node = REPLICASET if key[0] in REPLICASET else CLUSTER
    for name in key:
        node = node.value if isinstance(node, MapOf) else node[name] if isinstance(node, Mapping) else node
    return node


def _address(entry: object, path: str) -> str:
    """An entry of `iproto.listen` as an address of this server's option."""
    if not isinstance(entry, dict) or not isinstance(entry.get("uri"), str):
        raise ValueError(f"{path}: a mapping with a text uri is expected, such as uri: '127.0.0.1:3301'")
    for name in entry:
        if name not in ("uri", "params"):
            raise ValueError(f"{path}.{name}: unknown option{did_you_mean(name, ('uri', 'params'))}")
    uri: str = entry["uri"]
    if "?" in uri:
        raise ValueError(f"{path}.uri: parameters belong into params")
    if "@" in uri:
        raise ValueError(f"{path}.uri: an address has no user and password")
    parameters = entry.get("params") or {}
    if not isinstance(parameters, dict):
        raise ValueError(f"{path}.params: a mapping of names to values is expected")
    for name, value in parameters.items():
        if name not in _PARAMETERS:
            raise ValueError(f"{path}.params.{name}: unknown option{did_you_mean(name, _PARAMETERS)}")
        if not isinstance(value, str):
            raise ValueError(f"{path}.params.{name}: a text is expected")
    query = "&".join(f"{name}={quote(value, safe='/:')}" for name, value in parameters.items())
    return f"{uri}?{query}" if query else uri


def _roles(found: Found) -> list[object]:
    if not isinstance(found.value, list):
        raise ValueError(f"{found.path}: a list of names is expected")
    for role in found.value:
        if role != METRICS_ROLE:
            raise ValueError(f'{found.path}: "{role}" is not supported: there is no Lua')
    return found.value


def _metrics_address(found: Found) -> tuple[str, object]:
    """The address of the metrics and its place in the file."""
    servers = _field(found, ("http",))
    if not isinstance(servers.value, list) or len(servers.value) != 1:
        raise ValueError(f"{servers.path}: a list of one server is expected")
    server = Found(f"{servers.path}[1]", servers.value[0])
    listen = _field(server, ("listen", "endpoints"))
    endpoints = Found(f"{server.path}.endpoints", server.value["endpoints"])  # type: ignore[index]
    for path in _endpoints(endpoints):
        if path not in METRICS_PATHS:
            raise ValueError(f"{endpoints.path}: metrics are at {' and '.join(METRICS_PATHS)}, not {path}")
    return listen.path, listen.value


def _field(found: Found, names: tuple[str, ...]) -> Found:
    """The first field of a mapping that must have exactly these."""
    if not isinstance(found.value, dict):
        raise ValueError(f"{found.path}: a mapping with {' and '.join(names)} is expected")
    for name in found.value:
        if name not in names:
            raise ValueError(f"{found.path}.{name}: unknown option{did_you_mean(name, names)}")
    for name in names:
        if found.value.get(name) is None:
            raise ValueError(f"{found.path}.{name} is missing")
    return Found(f"{found.path}.{names[0]}", found.value[names[0]])


def _endpoints(found: Found) -> Iterator[str]:
    if not isinstance(found.value, list) or not found.value:
        raise ValueError(f"{found.path}: a list of endpoints is expected")
    for number, entry in enumerate(found.value, start=1):
        endpoint = Found(f"{found.path}[{number}]", entry)
        path = _field(endpoint, ("path", "format"))
        if entry["format"] != "prometheus":
            raise ValueError(f"{endpoint.path}.format: it is not supported: prometheus is expected")
        yield str(path.value)
