"""The entry point of the container image: environment variables become options."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import iproto_server.server
from iproto_server import Application, container
from iproto_server.config.address import Address
from iproto_server.config.config import Config
from iproto_server.config.credentials import ConfiguredGrant, ConfiguredPrincipal, Credentials
from iproto_server.server import ServiceManager
from tests.programs import REPOSITORY

NAME, PASSWORD = "TARANTOOL_USER_NAME", "TARANTOOL_USER_PASSWORD"
USER = {NAME: "jobs", PASSWORD: "secret"}
JOBS = Credentials(
    users=(
        ConfiguredPrincipal(
            "jobs",
            NAME,
            "secret",
            ("replication",),
            (ConfiguredGrant(NAME, ("read", "write", "execute", "create", "drop"), "universe"),),
        ),
    )
)
REFUSED = 2
METRICS_PORT = "TARANTOOL_PROMETHEUS_DEFAULT_METRICS_PORT"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[Config]]:
    """The configurations that the command would have served."""
    configs: list[Config] = []

    def run(
        config: Config, applications: Sequence[Application], reload: object, manager: ServiceManager
    ) -> int:
        configs.append(config)
        return 0

    monkeypatch.setattr(iproto_server.server, "run", run)
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("IPROTO_SERVER_", "TARANTOOL_"))]:
        monkeypatch.delenv(name)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield configs
    for number, handler in handlers.items():
        signal.signal(number, handler)


def start(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], *arguments: str) -> int:
    """Run the entry point with environment variables."""
    with monkeypatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        before = dict(os.environ)
        try:
            return container.run(arguments, os.environ)
        finally:
            for name in set(os.environ) - set(before):
                del os.environ[name]
            os.environ.update(before)


def test_without_other_variables(served: list[Config], monkeypatch: pytest.MonkeyPatch) -> None:
    assert start(monkeypatch, USER) == 0
    assert served == [
        Config(work_dir=Path("/var/lib/tarantool"), listen=(Address(port=3301),), credentials=JOBS)
    ]


def test_every_variable(served: list[Config], monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        "TARANTOOL_PORT": "3302",
        METRICS_PORT: "8081",
        "TARANTOOL_MEMTX_MEMORY": "268435456",
        "TARANTOOL_CHECKPOINT_INTERVAL": "600",
        "TARANTOOL_FORCE_RECOVERY": "true",
        "TARANTOOL_LOG_FORMAT": "json",
        "TARANTOOL_LOG_LEVEL": "6",
        "TARANTOOL_WAL_MODE": "fsync",
    }
    assert {*variables, *USER} == {*container.VARIABLES}
    assert start(monkeypatch, USER | variables) == 0
    assert served == [
        Config(
            work_dir=Path("/var/lib/tarantool"),
            listen=(Address(port=3302),),
            metrics_listen=Address(port=8081),
            memtx_memory=268435456,
            checkpoint_interval=600.0,
            force_recovery=True,
            log_format="json",
            log_level="verbose",
            wal_mode="fsync",
            credentials=JOBS,
        )
    ]


def test_options_override_variables(served: list[Config], monkeypatch: pytest.MonkeyPatch) -> None:
    variables = USER | {
        "TARANTOOL_LOG_LEVEL": "6",
        "TARANTOOL_WAL_MODE": "fsync",
        "IPROTO_SERVER_WAL_MODE": "none",
        "IPROTO_SERVER_WORK_DIR": "/data",
    }
    assert start(monkeypatch, variables, "--log-level", "warn", "--listen", "127.0.0.1:3303") == 0
    [config] = served
    assert (config.log_level, config.wal_mode, config.work_dir) == ("warn", "none", Path("/data"))
    assert config.listen == (Address("127.0.0.1", 3303),)


def test_a_file_overrides_the_defaults_of_the_image(
    served: list[Config], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = "iproto: {listen: [{uri: 'unix:/run/a.sock'}]}\nprocess: {work_dir: /data}\nlog: {level: warn}"
    (tmp_path / "config.yaml").write_text(text)
    assert start(monkeypatch, USER | {"TARANTOOL_LOG_LEVEL": "debug"}, "--config", "config.yaml") == 0
    [config] = served
    assert (config.listen, config.work_dir) == ((Address(path="/run/a.sock"),), Path("/data"))
    assert config.log_level == "debug"
    assert start(monkeypatch, USER | {"TARANTOOL_PORT": "3302"}, "--config", "config.yaml") == 0
    assert served[1].listen == (Address(port=3302),)


def test_users_of_a_file_are_made_as_well(
    served: list[Config], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text("credentials: {roles: {reader: }, users: {ann: {password: x}}}")
    assert start(monkeypatch, USER, "--config", "config.yaml") == 0
    credentials = served[0].credentials
    assert credentials is not None
    assert [each.name for each in credentials.roles + credentials.users] == ["reader", "ann", "jobs"]


def test_admin_has_all_rights_already(served: list[Config], monkeypatch: pytest.MonkeyPatch) -> None:
    assert start(monkeypatch, USER | {NAME: "admin"}) == 0
    assert served[0].credentials == Credentials(users=(ConfiguredPrincipal("admin", NAME, "secret"),))


@pytest.mark.parametrize("port", ["", "0"])
def test_no_metrics_without_a_port(served: list[Config], monkeypatch: pytest.MonkeyPatch, port: str) -> None:
    assert start(monkeypatch, USER | {METRICS_PORT: port}) == 0
    assert served[0].metrics_listen is None


def test_variables_that_kubernetes_makes_of_a_service_are_ignored(
    served: list[Config], monkeypatch: pytest.MonkeyPatch
) -> None:
    links = {"TARANTOOL_SERVICE_HOST": "10.0.0.1", "TARANTOOL_PORT_3301_TCP": "tcp://10.0.0.1:3301"}
    assert start(monkeypatch, USER | links) == 0
    assert len(served) == 1


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        (
            {},
            "TARANTOOL_USER_NAME and TARANTOOL_USER_PASSWORD must be set: otherwise every machine",
        ),
        ({NAME: "jobs"}, "TARANTOOL_USER_PASSWORD must be set: otherwise"),
        ({NAME: "jobs", PASSWORD: ""}, "TARANTOOL_USER_PASSWORD must be set: otherwise"),
        ({PASSWORD: "secret"}, "TARANTOOL_USER_NAME must be set: otherwise"),
        ({NAME: "guest", PASSWORD: "x"}, "TARANTOOL_USER_NAME: guest cannot have a password, so it must be"),
        (USER | {"TARANTOOL_PORT": "0"}, "TARANTOOL_PORT: 0 is out of bounds: from 1 to 65535"),
        (USER | {"TARANTOOL_PORT": "http"}, 'TARANTOOL_PORT: "http" is not a whole number'),
        (
            USER | {"TARANTOOL_PORT": "tcp://10.0.0.1:3301"},
            'TARANTOOL_PORT: "tcp://10.0.0.1:3301" is not a whole number; set enableServiceLinks: false',
        ),
        (USER | {METRICS_PORT: "70000"}, f"{METRICS_PORT}: 70000 is out of bounds"),
        (USER | {"TARANTOOL_MEMTX_MEMORY": "1"}, "TARANTOOL_MEMTX_MEMORY: 1 bytes is out of bounds"),
        (
            USER | {"TARANTOOL_CHECKPOINT_INTERVAL": "x"},
            'TARANTOOL_CHECKPOINT_INTERVAL: "x" is not an interval',
        ),
        (
            USER | {"TARANTOOL_FORCE_RECOVERY": "maybe"},
            'TARANTOOL_FORCE_RECOVERY: "maybe" is neither true nor',
        ),
        (
            USER | {"TARANTOOL_LOG_FORMAT": "xml"},
            'TARANTOOL_LOG_FORMAT: unknown log format "xml": choose plain or json',
        ),
        (USER | {"TARANTOOL_REPLICATION": "a:1"}, "TARANTOOL_REPLICATION is not supported: there is no repl"),
        (
            USER | {"TARANTOOL_SLAB_ALLOC_FACTOR": "2"},
            "TARANTOOL_SLAB_ALLOC_FACTOR is not supported: the eng",
        ),
        (
            USER | {"TARANTOOL_MEMTX_MEMMORY": "2"},
            'unknown environment variable TARANTOOL_MEMTX_MEMMORY, did you mean "TARANTOOL_MEMTX_MEMORY"?',
        ),
    ],
)
def test_wrong_variables_are_refused(
    served: list[Config],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variables: dict[str, str],
    reason: str,
) -> None:
    assert start(monkeypatch, variables) == REFUSED
    assert served == []
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"iproto-server: {reason}")
    assert "secret" not in line


def test_a_wrong_option_is_refused(
    served: list[Config], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(monkeypatch, USER, "--net-msg-max", "many") == REFUSED
    assert capsys.readouterr().err == 'iproto-server: --net-msg-max: "many" is not a whole number\n'


@pytest.mark.process
def test_nothing_is_healthy_where_nothing_listens(
    served: list[Config], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(monkeypatch, USER | {"TARANTOOL_PORT": "1"}, "health") == 1
    assert capsys.readouterr().err == "iproto-server: cannot connect to 127.0.0.1:1: Connection refused\n"


def test_the_document_has_every_variable() -> None:
    text = (REPOSITORY / "docs" / "OPERATIONS.md").read_text(encoding="utf-8")
    _, _, section = text.partition("\n## Containers\n")
    assert [name for name in container.VARIABLES if f"`{name}`" not in section] == []
