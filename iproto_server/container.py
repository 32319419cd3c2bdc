"""The entry point of the container image: environment variables of Tarantool's image become options.

`python -m iproto_server.container [MODULE:APP]… [options]` serves; with the argument `health` it is the
image's health check.

Source: README and entry point of tarantool/docker, "Environment variables".
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

from iproto_server.cli import PROGRAM, main
from iproto_server.config.address import Address
from iproto_server.config.config import SET_BY_KUBERNETES, Config, ConfigError
from iproto_server.config.credentials import ConfiguredGrant, ConfiguredPrincipal, Credentials
from iproto_server.config.option_parsers import whole
from iproto_server.config.options import OPTIONS
from iproto_server.config.suggestions import did_you_mean

PREFIX: Final = "TARANTOOL_"
USER, PASSWORD, PORT = "TARANTOOL_USER_NAME", "TARANTOOL_USER_PASSWORD", "TARANTOOL_PORT"
METRICS_PORT: Final = "TARANTOOL_PROMETHEUS_DEFAULT_METRICS_PORT"
DEFAULT_PORT: Final = 3301
WORK_DIR: Final = Path("/var/lib/tarantool")
"""The directory of the data, which is the image's volume."""

OPTION_OF: Final = {
    "TARANTOOL_MEMTX_MEMORY": "memtx_memory",
    "TARANTOOL_CHECKPOINT_INTERVAL": "checkpoint_interval",
    "TARANTOOL_FORCE_RECOVERY": "force_recovery",
    "TARANTOOL_LOG_FORMAT": "log_format",
    "TARANTOOL_LOG_LEVEL": "log_level",
    "TARANTOOL_WAL_MODE": "wal_mode",
}
"""The variables that are options under another name."""

VARIABLES: Final = (USER, PASSWORD, PORT, METRICS_PORT, *OPTION_OF)

_NO_SUCH_OPTION: Final = {
    **dict.fromkeys(("TARANTOOL_REPLICATION", "TARANTOOL_REPLICATION_SOURCE"), "there is no replication"),
    **dict.fromkeys(
        (
            *("TARANTOOL_SLAB_ALLOC_ARENA", "TARANTOOL_SLAB_ALLOC_FACTOR"),
            *("TARANTOOL_SLAB_ALLOC_MINIMAL", "TARANTOOL_SLAB_ALLOC_MAXIMAL"),
            *("TARANTOOL_MEMTX_MIN_TUPLE_SIZE", "TARANTOOL_MEMTX_MAX_TUPLE_SIZE"),
        ),
        "the engine manages its memory itself; TARANTOOL_MEMTX_MEMORY limits it",
    ),
    "TARANTOOL_SNAPSHOT_PERIOD": "it is called TARANTOOL_CHECKPOINT_INTERVAL",
}
_PRIVILEGES: Final = ("read", "write", "execute", "create", "drop")
"""Rights of the image's user on the universe, beside its role `replication`."""

_parse_port = whole(1, 65535)


def run(arguments: Sequence[str], environment: MutableMapping[str, str]) -> int:
    """Serve, or check the health of the server in the same container.

    Parameters:
        arguments: `health`, or those of `iproto-server serve`, which override variables.
        environment: the process's environment; the options are set in it.

    Returns:
        The exit status: 0; 1: the server cannot start or is not healthy; 2: a variable or an option is wrong.
    """
    try:
        if list(arguments) == ["health"]:
            return _health(environment)
        user = _user(environment)
        for name, value in _options(environment).items():
            environment.setdefault(name, value)
    except ConfigError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    defaults = Config(
        work_dir=WORK_DIR, listen=(Address(port=DEFAULT_PORT),), credentials=Credentials(users=(user,))
    )
    return main(["serve", *arguments], defaults)


def _end(number: int, frame: FrameType | None) -> None:
    """End the process at once, until the server handles signals: the kernel ignores those for process 1."""
    os._exit(128 + number)


def _options(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of this server's options that are given. Raises ConfigError."""
    _check_names(environment)
    options: dict[str, str] = {}
    if (port := _port(environment, PORT)) is not None:
        options["IPROTO_SERVER_LISTEN"] = f"*:{port}"
    # Tarantool's image takes 0 for none.
    if environment.get(METRICS_PORT, "").strip() != "0" and (port := _port(environment, METRICS_PORT)):
        options["IPROTO_SERVER_METRICS_LISTEN"] = f"*:{port}"
    for option in OPTIONS:
        for variable, name in OPTION_OF.items():
            value = environment.get(variable, "").strip()
            if name != option.name or not value:
                continue
            try:
                option.parse(value)
            except ValueError as error:
                raise ConfigError(f"{variable}: {error}") from error
            options[option.variable] = value
    return options


def _check_names(environment: Mapping[str, str]) -> None:
    for variable in environment:
        if not variable.startswith(PREFIX) or variable in VARIABLES or SET_BY_KUBERNETES.search(variable):
            continue
        if variable in _NO_SUCH_OPTION:
            raise ConfigError(f"{variable} is not supported: {_NO_SUCH_OPTION[variable]}")
        raise ConfigError(f"unknown environment variable {variable}{did_you_mean(variable, VARIABLES)}")


def _port(environment: Mapping[str, str], variable: str) -> int | None:
    """Return a port; None if the variable is not set. Raises ConfigError."""
    text = environment.get(variable, "").strip()
    if not text:
        return None
    try:
        return _parse_port(text)
    except ValueError as error:
        # Kubernetes sets TARANTOOL_PORT for a service that is called tarantool.
        hint = "; set enableServiceLinks: false in the pod" if text.startswith("tcp://") else ""
        raise ConfigError(f"{variable}: {error}{hint}") from error


def _user(environment: Mapping[str, str]) -> ConfiguredPrincipal:
    """Return the user of the image, with all rights. Raises ConfigError."""
    name, password = environment.get(USER, ""), environment.get(PASSWORD, "")
    missing = [variable for variable, value in ((USER, name), (PASSWORD, password)) if not value]
    if missing:
        raise ConfigError(
            f"{' and '.join(missing)} must be set: otherwise every machine that reaches the port could change"
            " everything"
        )
    if name == "guest":
        raise ConfigError(f"{USER}: guest cannot have a password, so it must be another user")
    return ConfiguredPrincipal(
        name,
        USER,
        password,
        roles=() if name == "admin" else ("replication",),
        grants=() if name == "admin" else (ConfiguredGrant(USER, _PRIVILEGES, "universe"),),
    )


def _health(environment: Mapping[str, str]) -> int:
    """Log in to the server as its user; return 0 if that works."""
    from iproto_server.tools.client import ClientError, ServerUri, connect

    user = _user(environment)
    address = Address("127.0.0.1", _port(environment, PORT) or DEFAULT_PORT)
    try:
        connect(ServerUri(address, user.name, user.password)).close()
    except ClientError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], os.environ))
