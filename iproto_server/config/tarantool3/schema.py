"""The options of a Tarantool 3 configuration file, and what each of them means to this server.

Source: Tarantool 3 manual, "Configuration reference"; the schema of Tarantool's module `config`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Mapped:
    """An option of this server.

    Parameters:
        option: its name.
        unit: "bytes" or "seconds" if the value may be a text with a unit, "64MiB" or "1h"; "": neither.
    """

    option: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Special:
    """An option that `server_options` or `credentials_section` interprets."""


@dataclass(frozen=True, slots=True)
class NoEffect:
    """An option that changes nothing here: a warning tells, unless the value is what the server does anyway.

    Parameters:
        reason: why, as the end of a sentence.
        usual: the values without a warning.
    """

    reason: str
    usual: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """An option that is an error, because the server would not do what it asks for.

    Parameters:
        reason: why, as the end of a sentence.
        usual: the values that are no error, because the server does that.
    """

    reason: str
    usual: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping with names that users choose.

    Parameters:
        value: what each of its values is.
    """

    value: Node


Rule: TypeAlias = Mapped | Special | NoEffect | Refused
Node: TypeAlias = "Rule | MapOf | Mapping[str, Node]"
Record: TypeAlias = Mapping[str, Node]

_REPLICATION: Final = "there is no replication"
_VINYL: Final = "there is no engine vinyl"
_ENGINE: Final = "the engine manages its memory itself"
_LUA: Final = "there is no Lua"
_ENTERPRISE: Final = "it belongs to Tarantool's Enterprise Edition"
_PROCESS: Final = "the service manager does that"
_TRANSACTIONS: Final = "transactions always see a consistent state"


def _all(rule: Rule, *names: str) -> dict[str, Node]:
    return dict.fromkeys(names, rule)


_PRINCIPAL: Final[Record] = {"roles": Special(), "privileges": Special()}

INSTANCE: Final[Record] = {
    "app": {
        "module": Mapped("apps"),
        "file": Refused("an application is a Python module, given as app.module: MODULE:APP"),
        "cfg": Refused(_LUA),
    },
    "audit_log": Refused(_ENTERPRISE),
    "compat": NoEffect(_LUA),
    "config": {
        "reload": NoEffect("the file is read at the start only", usual=("manual",)),
        "context": MapOf(Special()),
        "etcd": Refused(_ENTERPRISE),
        "storage": Refused(_ENTERPRISE),
    },
    "connpool": NoEffect(_REPLICATION),
    "console": NoEffect("there is no console", usual=({"enabled": False},)),
    "credentials": {
        "roles": MapOf(_PRINCIPAL),
        "users": MapOf({"password": Special(), **_PRINCIPAL}),
    },
    "database": {
        "mode": Special(),
        "instance_uuid": Mapped("instance_uuid"),
        "replicaset_uuid": NoEffect(_REPLICATION),
        "hot_standby": Refused("there is no hot standby", usual=(False,)),
        **_all(NoEffect(_TRANSACTIONS), "txn_isolation", "txn_synchro_timeout"),
        "txn_timeout": NoEffect("transactions have the timeout that their client gives"),
        "use_mvcc_engine": NoEffect(_TRANSACTIONS, usual=(True,)),
    },
    "failover": Refused(_REPLICATION),
    "feedback": NoEffect("the server sends no reports", usual=({"enabled": False},)),
    "fiber": {
        "too_long_threshold": Mapped("too_long_threshold", "seconds"),
        **_all(NoEffect("there are no fibers"), "io_collect_interval", "worker_pool_threads", "slice"),
        **_all(NoEffect("there are no fibers"), "top", "tx_user_pool_size"),
    },
    "flightrec": Refused(_ENTERPRISE, usual=({"enabled": False},)),
    "iproto": {
        "listen": Special(),
        "net_msg_max": Mapped("net_msg_max"),
        "advertise": NoEffect(_REPLICATION),
        "threads": NoEffect("one thread serves all connections", usual=(1,)),
        "readahead": NoEffect("buffers have the size that they need"),
        "ssl": Refused("give the parameters of TLS in iproto.listen"),
    },
    "isolated": Refused(_REPLICATION, usual=(False,)),
    "labels": NoEffect("nothing reads labels of instances"),
    "log": {
        "to": Special(),
        "file": Special(),
        "level": Mapped("log_level"),
        "format": Mapped("log_format"),
        "nonblock": NoEffect("the log is written to a file or to stderr"),
        "modules": NoEffect(_LUA),
        **_all(NoEffect("log.to cannot choose it"), "pipe", "syslog"),
    },
    "lua": NoEffect(_LUA),
    "memtx": {
        "memory": Mapped("memtx_memory", "bytes"),
        "max_tuple_size": NoEffect("--max-frame limits the size of a request"),
        **_all(NoEffect(_ENGINE), "allocator", "min_tuple_size", "slab_alloc_factor"),
        **_all(NoEffect(_ENGINE), "slab_alloc_granularity", "sort_threads", "use_sort_data"),
    },
    "metrics": {
        "include": NoEffect("all metrics are served", usual=(["all"],)),
        "exclude": NoEffect("all metrics are served", usual=([],)),
        "labels": MapOf(Special()),
    },
    "process": {
        "work_dir": Mapped("work_dir"),
        "background": Refused(_PROCESS, usual=(False,)),
        "username": Refused(_PROCESS),
        **_all(NoEffect(_PROCESS), "coredump", "pid_file", "strip_core", "title"),
    },
    "quiver": Refused(_ENTERPRISE),
    "replication": {
        "failover": Special(),
        "anon": Refused(_REPLICATION, usual=(False,)),
        **_all(NoEffect(_REPLICATION), "anon_ttl", "autoexpel", "bootstrap_strategy", "connect_timeout"),
        **_all(NoEffect(_REPLICATION), "election_fencing_mode", "election_mode", "election_timeout"),
        **_all(NoEffect(_REPLICATION), "linearizable_quorum", "peers", "reconnect_timeout"),
        **_all(NoEffect(_REPLICATION), "skip_conflict", "sync_lag", "sync_timeout", "synchro_timeout"),
        **_all(NoEffect(_REPLICATION), "synchro_queue_max_size", "synchro_quorum", "threads", "timeout"),
    },
    "roles": Special(),
    "roles_cfg": Special(),
    "security": {
        "auth_type": Mapped("auth_type"),
        "disable_guest": Special(),
        **_all(Refused(_ENTERPRISE), "auth_delay", "auth_retries", "secure_erasing"),
        **_all(Refused(_ENTERPRISE), "password_enforce_digits", "password_enforce_lowercase"),
        **_all(Refused(_ENTERPRISE), "password_enforce_specialchars", "password_enforce_uppercase"),
        **_all(Refused(_ENTERPRISE), "password_history_length", "password_lifetime_days"),
        **_all(Refused(_ENTERPRISE), "password_min_length"),
    },
    "session": Refused("--idle-timeout closes idle connections of all users"),
    "sharding": Refused("there is no sharding"),
    "snapshot": {
        "dir": Mapped("memtx_dir"),
        "by": {
            "interval": Mapped("checkpoint_interval", "seconds"),
            "wal_size": Mapped("checkpoint_wal_threshold", "bytes"),
        },
        "count": Mapped("checkpoint_count"),
        "snap_io_rate_limit": Mapped("snap_io_rate_limit"),
    },
    "sql": NoEffect("there is no SQL"),
    "stateboard": Refused(_ENTERPRISE),
    "threads": NoEffect("one thread serves all connections"),
    "vinyl": NoEffect(_VINYL),
    "wal": {
        "dir": Mapped("wal_dir"),
        "mode": Mapped("wal_mode"),
        "max_size": Mapped("wal_max_size", "bytes"),
        "ext": Refused(_ENTERPRISE),
        "retention_period": Refused(_ENTERPRISE, usual=(0,)),
        **_all(NoEffect(_REPLICATION), "cleanup_delay", "dir_rescan_delay"),
        "queue_max_size": NoEffect("a write to the log has all changes of an event-loop iteration"),
    },
}
"""The options of an instance. Each scope may have them: global, group, replicaset and instance."""

REPLICASET: Final[Record] = {
    **INSTANCE,
    "leader": Special(),
    "bootstrap_leader": NoEffect(_REPLICATION),
    "instances": MapOf(INSTANCE),
}
GROUP: Final[Record] = {**INSTANCE, "replicasets": MapOf(REPLICASET)}
CLUSTER: Final[Record] = {
    **INSTANCE,
    "groups": MapOf(GROUP),
    "include": Refused("give one file"),
    "conditional": Refused("give the options for this server alone"),
}


def options_by_path(record: Record = INSTANCE, prefix: str = "") -> Iterator[tuple[str, Node]]:
    """Yield all options with their paths, `("wal.dir", Mapped("wal_dir"))`.

    Parameters:
        record: the options to go through.
        prefix: put before each path.
    """
    for name, node in record.items():
        path = prefix + name
        if isinstance(node, Mapping):
            yield from options_by_path(node, f"{path}.")
        yield path, node
