"""The container image: its build, its entry point and its health check; the compose file."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from iproto_server import container
from tests.packaging.image import DOCKER, Container, Stage, build_image
from tests.programs import REPOSITORY

USER = {"TARANTOOL_USER_NAME": "jobs", "TARANTOOL_USER_PASSWORD": "secret"}
SLOW = "import time\nprint('importing', flush=True)\ntime.sleep(600)\n"
CLIENT = """
import tarantool
server = tarantool.Connection("127.0.0.1", 3301, user="jobs", password="secret")
server.call("queue.create_tube", ["mail", "fifo", {"if_not_exists": True}])
server.call("queue.tube.mail:put", ["a task"])
print(server.call("queue.statistics", ["mail"]).data[0]["tasks"]["ready"])
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """The image, built once."""
    return build_image(tmp_path_factory.mktemp("image"))


@pytest.mark.slow
def test_the_image_serves_until_it_is_stopped(image: Stage) -> None:
    variables = {**USER, "TARANTOOL_PROMETHEUS_DEFAULT_METRICS_PORT": "8081", "TARANTOOL_LOG_FORMAT": "json"}
    with Container(image, None, variables) as first:
        first.process.wait_for('"event": "ready to accept requests"')
        health = first.health()
        assert (health.returncode, health.stdout, health.stderr) == (0, "", "")
        put = first.execute("python3", "-c", CLIENT)
        assert (put.returncode, put.stdout) == (0, "1\n"), put.stderr
        fetch = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8081/metrics').status)"
        assert first.execute("python3", "-c", fetch).stdout == "200\n"
        assert first.execute("id", "-u").stdout == "3301\n"
        assert first.stop() == 0
        assert '"event": "stopped"' in first.process.output
    data = image.path("/var/lib/tarantool")
    assert {file.suffix for file in data.iterdir()} >= {".snap", ".xlog"}
    assert {file.stat().st_uid for file in (data, *data.iterdir())} == {3301}
    with Container(image, None, USER) as second:
        second.process.wait_for("ready to accept requests")
        assert second.execute("python3", "-c", CLIENT).stdout == "2\n"
        assert second.stop() == 0


@pytest.mark.slow
def test_an_unhealthy_container(image: Stage) -> None:
    image.path("/opt/tarantool/slow.py").write_text(SLOW)
    with Container(image, ["slow:app"], USER) as starting:
        starting.process.wait_for("importing")
        health = starting.health()
        assert health.returncode == 1
        assert health.stderr == "iproto-server: cannot connect to 127.0.0.1:3301: Connection refused\n"
        # Process 1 gets no signal without a handler.
        assert starting.stop() == 143


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({}, "TARANTOOL_USER_NAME and TARANTOOL_USER_PASSWORD must be set: otherwise every machine"),
        ({**USER, "TARANTOOL_LOG_LEVEL": "loud"}, 'TARANTOOL_LOG_LEVEL: unknown log level "loud"'),
    ],
)
def test_wrong_variables_are_refused(image: Stage, variables: dict[str, str], reason: str) -> None:
    with Container(image, None, variables) as refused:
        assert refused.process.wait() == 2
        assert refused.process.output.startswith(f"iproto-server: {reason}")


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    return loaded


SERVICE_KEYS = {
    *("build", "cap_drop", "command", "environment", "image", "init", "ports", "read_only", "restart"),
    *("security_opt", "stop_grace_period", "volumes"),
}
"""The elements of a service that the file has. Source: Compose specification, "Services"."""


def test_the_compose_file_has_the_structure_of_the_specification() -> None:
    loaded = compose()
    assert set(loaded) == {"name", "services", "volumes"}
    [service] = loaded["services"].values()
    assert set(service) == SERVICE_KEYS
    assert all(isinstance(value, str) for value in service["environment"].values())
    assert [volume.partition(":")[0] for volume in service["volumes"]] == list(loaded["volumes"])
    assert re.fullmatch(r"\d+s", service["stop_grace_period"])


def test_the_compose_file_fits_the_image() -> None:
    [service] = compose()["services"].values()
    dockerfile = (DOCKER / "Dockerfile").read_text()
    environment = service["environment"]
    assert (DOCKER / service["build"]["context"]).resolve() == REPOSITORY
    assert (REPOSITORY / service["build"]["dockerfile"]) == DOCKER / "Dockerfile"
    assert set(environment) <= {*container.VARIABLES}
    assert [volume.partition(":")[2] for volume in service["volumes"]] == re.findall(
        r"^VOLUME (.*)$", dockerfile, re.MULTILINE
    )
    for port in service["ports"]:
        host, _, inside = port.split(":")
        assert host == "127.0.0.1"
        assert inside in (environment[container.PORT], environment[container.METRICS_PORT])
    assert f"CMD {service['command']}".replace("'", '"') in dockerfile


def test_the_image_needs_no_shell_and_no_root() -> None:
    text = (DOCKER / "Dockerfile").read_text()
    user, _, group = re.findall(r"^USER (.*)$", text, re.MULTILINE)[-1].partition(":")
    assert user.isdecimal()
    assert user == group != "0"
    for instruction in ("ENTRYPOINT", "CMD", "HEALTHCHECK"):
        assert re.search(rf'^{instruction}[^"]*\[("[^"]*"(, )?)+\]$', text, re.MULTILINE), instruction


def test_the_data_is_where_the_image_says() -> None:
    assert f"VOLUME {container.WORK_DIR}\n" in (DOCKER / "Dockerfile").read_text()
    assert container.WORK_DIR.is_absolute()
