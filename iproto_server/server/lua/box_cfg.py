"""The options of `box.cfg` before the first call: what the server is started with.

Source: Tarantool reference, "Configuration parameters".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from iproto_server.box.api.instance.cfg import wrong_value
from iproto_server.config.config import Config
from iproto_server.config.lua_options import LUA_OPTIONS
from iproto_server.config.option import Option
from iproto_server.config.options import OPTIONS

_OF_THE_PROCESS: Final = {"apps", *(option.name for option in LUA_OPTIONS)}
"""Options that have taken effect before `box.cfg` is called."""

_OPTIONS: Final = {option.name: option for option in OPTIONS if option.name not in _OF_THE_PROCESS}

WITHOUT_EFFECT: Final = frozenset(
    (
        "background",
        "coredump",
        "custom_proc_title",
        "election_mode",
        "election_timeout",
        "feedback_enabled",
        "feedback_host",
        "feedback_interval",
        "hot_standby",
        "io_collect_interval",
        "iproto_threads",
        "log_nonblock",
        "memtx_max_tuple_size",
        "memtx_min_tuple_size",
        "memtx_use_mvcc_engine",
        "pid_file",
        "readahead",
        "replicaset_uuid",
        "replication",
        "replication_anon",
        "replication_connect_quorum",
        "replication_connect_timeout",
        "replication_skip_conflict",
        "replication_sync_lag",
        "replication_sync_timeout",
        "replication_synchro_quorum",
        "replication_synchro_timeout",
        "replication_timeout",
        "rows_per_wal",
        "slab_alloc_arena",
        "slab_alloc_factor",
        "slab_alloc_granularity",
        "slab_alloc_maximal",
        "slab_alloc_minimal",
        "snap_dir",
        "sql_cache_size",
        "strip_core",
        "txn_timeout",
        "username",
        "vinyl_bloom_fpr",
        "vinyl_cache",
        "vinyl_dir",
        "vinyl_max_tuple_size",
        "vinyl_memory",
        "vinyl_page_size",
        "vinyl_range_size",
        "vinyl_read_threads",
        "vinyl_run_count_per_level",
        "vinyl_run_size_ratio",
        "vinyl_timeout",
        "vinyl_write_threads",
        "wal_cleanup_delay",
        "wal_dir_rescan_delay",
        "worker_pool_threads",
    )
)
"""Options of Tarantool that are accepted, and change nothing here."""


def with_box_cfg(config: Config, options: Mapping[str, Any]) -> Config:
    """Return the configuration with the options of a first `box.cfg`.

    Parameters:
        config: the configuration without them.
        options: the options by name; None for what is not set.

    Raises:
        BoxError: CFG (59), an option is unknown, or has a wrong value.
    """
    changed: dict[str, Any] = {}
    for name, value in options.items():
        if value is None or name in WITHOUT_EFFECT:
            continue
        option = _OPTIONS.get(name)
        if option is None:
            raise wrong_value(name, "unexpected option")
        try:
            if option.many:
                items = value if isinstance(value, list) else [value]
                changed[name] = tuple(option.parse(_written(name, item)) for item in items)
            elif isinstance(value, float):
                changed[name] = _parse_float(option, value)
            else:
                changed[name] = option.parse(_written(name, value))
        except ValueError as error:
            raise wrong_value(name, str(error)) from error
    if "work_dir" in changed:
        changed["work_dir"] = Path(changed["work_dir"])
    return dataclasses.replace(config, **changed)


def _parse_float(option: Option, value: float) -> object:
    """The value of an option, given as a fraction; integer options lose what is behind the point."""
    if value.is_integer():
        return option.parse(int(value))
    try:
        return option.parse(value)
    except ValueError:
        if not math.isfinite(value):
            raise
        return option.parse(int(value))


def _written(name: str, value: object) -> object:
    """A value as it is written in a configuration."""
    if name == "listen" and isinstance(value, str):
        if value.startswith(("/", "./")):
            return f"unix:{value}"
        if value.startswith("unix/:"):
            return value.replace("unix/:", "unix:", 1)
    if name == "log" and isinstance(value, str) and value.startswith("file:"):
        return value.removeprefix("file:")
    return value
