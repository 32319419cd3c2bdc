"""`box.cfg` of a server: its options, and changing them while it runs.

Source: Tarantool reference, "Submodule box.cfg", where an option says whether it is dynamic.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from iproto_server.box import Box
from iproto_server.box.api.instance.cfg import Configuration, wrong_value
from iproto_server.box.memtx.memory_budget import budget
from iproto_server.config.config import Config
from iproto_server.config.lua_options import LUA_OPTIONS
from iproto_server.config.option import Option
from iproto_server.config.options import OPTIONS
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.logging.log_setup import change_logs
from iproto_server.server.checkpoints.checkpointer import Checkpointer
from iproto_server.server.connection.server_state import ServerState

logger = logging.getLogger("iproto_server.server")

_DEFAULTS: Final = Config()
_HIDDEN: Final = frozenset(
    (
        "apps",
        "busy_poll",
        "graphite",
        "graphite_interval",
        "graphite_prefix",
        "graphite_protocol",
        "http",
        "http_behind_proxy",
        *(option.name for option in LUA_OPTIONS),
        "metrics_listen",
        "metrics_max_queues",
        "metrics_token_file",
    )
)
"""Options that Tarantool's `box.cfg` lacks, or that the configuration has under another name."""

_DYNAMIC: Final = frozenset(
    (
        "auth_type",
        "checkpoint_count",
        "checkpoint_interval",
        "checkpoint_wal_threshold",
        "force_recovery",
        "frame_timeout",
        "idle_timeout",
        "log_format",
        "log_level",
        "login_timeout",
        "max_connections",
        "max_connections_per_address",
        "max_connections_per_user",
        "max_frame_before_login",
        "max_unsent",
        "memtx_memory",
        "net_msg_max",
        "read_only",
        "snap_io_rate_limit",
        "stop_timeout",
        "too_long_threshold",
        "write_high_water",
    )
)
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "listen": (str, int, list),
    "log_level": (int, str),
    **dict.fromkeys(("allow_guest", "force_recovery", "read_only"), (bool,)),
    **dict.fromkeys(
        (
            "checkpoint_count",
            "checkpoint_interval",
            "checkpoint_wal_threshold",
            "frame_timeout",
            "idle_timeout",
            "login_timeout",
            "max_buffered",
            "max_connections",
            "max_connections_per_address",
            "max_connections_per_user",
            "max_frame",
            "max_frame_before_login",
            "max_unsent",
            "memtx_memory",
            "net_msg_max",
            "snap_io_rate_limit",
            "stop_timeout",
            "too_long_threshold",
            "wal_max_size",
            "write_high_water",
        ),
        (int, float),
    ),
}
"""The allowed types of values; all other options are strings."""

_WORDS: Final = {bool: "boolean", int: "number", float: "number", str: "string", list: "table"}
_REASONS: Final = {
    "checkpoint_count": "the value must not be less than one",
    "log_format": "expected json,plain",
    "log_level": "expected crit,warn,info,debug,syserror,verbose,fatal,error",
    "net_msg_max": "minimal value is 2",
}
"""Tarantool's error texts for values out of range."""

_TYPE_REASONS: Final = {
    "log_format": _REASONS["log_format"],
    "log_level": "must be a number or a string",
}
"""Tarantool's special error texts for values of a wrong type."""


class DynamicConfig:
    """Provides `box.cfg`: the options of a running server, and changes of them.

    Parameters:
        server: the server's state; a change replaces its `config`.
        box: the box that gets the `cfg`.
        checkpointer: takes snapshots.
    """

    def __init__(self, server: ServerState, box: Box, checkpointer: Checkpointer) -> None:
        self._server = server
        self._box = box
        self._checkpointer = checkpointer
        self._options = {option.name: option for option in OPTIONS if option.name not in _HIDDEN}
        box.cfg = Configuration(self.values, self.change)

    def values(self) -> dict[str, Any]:
        """Return the options that are set, by name, with values that clients can get."""
        config = self._server.config
        values = {name: _shown(getattr(config, name)) for name in self._options}
        return {name: value for name, value in values.items() if value is not None}

    def change(self, options: Mapping[str, Any]) -> None:
        """Change all given options, or none if one is refused.

        Raises:
            BoxError: CFG (59) or RELOAD_CFG (58), see `Configuration`.
        """
        now = self.values()
        changed: dict[str, Any] = {}
        for name, value in options.items():
            option = self._options.get(name)
            if option is None:
                raise wrong_value(str(name), "unexpected option")
            is_default = value is None or value == ""
            if not is_default:
                _check_type(name, value)
            if name in _DYNAMIC:
                changed[name] = getattr(_DEFAULTS, name) if is_default else _parsed(option, value)
                if name == "memtx_memory":
                    _check_growth(self._server.config.memtx_memory, changed[name])
            elif (_shown(getattr(_DEFAULTS, name)) if is_default else value) != now.get(name):
                raise BoxError(ErrorCode.RELOAD_CFG, name)
        if changed:
            self._apply(changed)

    def _apply(self, changed: dict[str, Any]) -> None:
        """Apply parsed values."""
        server = self._server
        config = server.config = dataclasses.replace(server.config, **changed)
        appliers: Mapping[str, Callable[[Config], object]] = {
            "auth_type": lambda config: self._box.access.set_auth_type(config.auth_type),
            "log_level": lambda config: change_logs(config.log_level, config.log_format),
            "log_format": lambda config: change_logs(config.log_level, config.log_format),
            "checkpoint_count": self._checkpointer.configure,
            "checkpoint_interval": self._checkpointer.configure,
            "checkpoint_wal_threshold": self._checkpointer.configure,
            "snap_io_rate_limit": self._checkpointer.configure,
            "memtx_memory": lambda config: budget.set_limit(config.memtx_memory),
            "read_only": lambda config: self._box.set_read_only(config.read_only),
            "idle_timeout": lambda config: server.idle.configure(),
            "max_connections": lambda config: server.admission.reserve_descriptors(),
            "net_msg_max": lambda config: server.let_held_go_on(),
            "write_high_water": lambda config: server.limits_changed(),
        }
        for apply in dict.fromkeys(appliers[name] for name in changed if name in appliers):
            apply(config)
        for name in changed:
            logger.info("set %s to %s", name, json.dumps(_shown(getattr(config, name))))


def _shown(value: Any) -> Any:
    """Convert a value of the configuration to that of Tarantool's `box.cfg`."""
    if isinstance(value, tuple):
        texts = [str(item) for item in value]
        return texts[0] if len(texts) == 1 else texts
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _check_type(name: str, value: object) -> None:
    """Raise BoxError CFG if a value has a wrong type."""
    types = _TYPES.get(name, (str,))
    is_fit = bool in types if isinstance(value, bool) else isinstance(value, types)
    if is_fit:
        return
    words = list(dict.fromkeys(_WORDS[kind] for kind in types))
    if name in _TYPE_REASONS:
        raise wrong_value(name, _TYPE_REASONS[name])
    if len(words) == 1:
        raise wrong_value(name, f"should be of type {words[0]}")
    raise wrong_value(name, f"should be one of types {', '.join(words)}")


def _check_growth(now: int | None, new: int | None) -> None:
    """Raise BoxError CFG if the memory would become less, as in Tarantool; None is no limit."""
    if new is not None and (now is None or new < now):
        raise wrong_value("memtx_memory", "cannot decrease memory size at runtime")


def _parsed(option: Option, value: object) -> object:
    """Parse a value for the configuration. Raises BoxError CFG if it is invalid."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        return option.parse(value)
    except ValueError as error:
        raise wrong_value(option.name, _REASONS.get(option.name, str(error))) from error
