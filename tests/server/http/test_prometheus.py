"""A real Prometheus scrapes our server while clients work."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from iproto_server.tools.dashboard import shipped
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import QUEUE_APPLICATION, RunningServer
from tests.server.http.http_client import HTTP, http_port, metrics, request
from tests.server.http.prometheus import JOB, Prometheus, promtool
from tests.tools.test_dashboard import panels, queried, rules

pytestmark = pytest.mark.prometheus

TASKS = 300
PRODUCERS = 3


@pytest.fixture
def rules_file(tmp_path: Path) -> Path:
    file = tmp_path / "alerts.yml"
    file.write_text(shipped("alerts"))
    return file


@pytest.fixture
def server(start_server: StartServer) -> RunningServer:
    return start_server([QUEUE_APPLICATION], [*HTTP, "--instance-name", "queue-1"])


@pytest.fixture
def prometheus(server: RunningServer, tmp_path: Path, rules_file: Path) -> Iterator[Prometheus]:
    with Prometheus(tmp_path, http_port(server), rules_file) as prometheus:
        yield prometheus


def produce(address: str) -> None:
    with IprotoClient.at(address) as client:
        for number in range(TASKS):
            assert client.call("queue.put", {"number": number}).ok


def consume(address: str, count: int) -> None:
    with IprotoClient.at(address) as client:
        for _ in range(count):
            [task] = client.call("queue.take", 20).data
            assert client.call("queue.ack", task["id"]).ok


def work(address: str) -> None:
    """Put tasks, and take and acknowledge them, by several clients at a time."""
    threads = [threading.Thread(target=produce, args=(address,)) for _ in range(PRODUCERS)]
    threads += [threading.Thread(target=consume, args=(address, TASKS * PRODUCERS // 2)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def substituted(expression: str) -> str:
    """A query of the dashboard for all instances and queues."""
    for name, value in (("job", JOB), ("alias", ".*"), ("queue", ".*"), ("__rate_interval", "10s")):
        expression = expression.replace(f"${name}", value)
    return expression


def test_promtool_finds_nothing_in_the_metrics(server: RunningServer) -> None:
    program = promtool()
    work(server.address)
    page = request(http_port(server), "/metrics").text
    done = subprocess.run(
        [program, "check", "metrics"], input=page, capture_output=True, text=True, timeout=60, check=False
    )
    complaints = (done.stdout + done.stderr).splitlines()
    assert [line for line in complaints if not is_of_tarantool(line)] == []
    assert (done.returncode == 0) == (complaints == [])


def is_of_tarantool(line: str) -> bool:
    """Whether promtool complains of a name that is Tarantool's."""
    return line.startswith("tnt_") and not line.startswith("tnt_queue_")


def test_promtool_finds_nothing_in_the_rules(rules_file: Path) -> None:
    done = subprocess.run(
        [promtool(), "check", "rules", str(rules_file)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"SUCCESS: {len(rules())} rules found" in done.stdout


def test_prometheus_counts_the_load(server: RunningServer, prometheus: Prometheus) -> None:
    prometheus.wait_for(f'up{{job="{JOB}"}} == 1')
    work(server.address)
    total = TASKS * PRODUCERS
    for call in ("put", "take", "ack"):
        prometheus.wait_for(f'tnt_queue_calls_total{{alias="queue-1",name="queue",call="{call}"}} == {total}')
    prometheus.wait_for(f'tnt_stats_op_total{{alias="queue-1",operation="call"}} == {3 * total}')
    prometheus.wait_for(f'tnt_queue_wait_seconds_count{{name="queue"}} == {total}')
    prometheus.wait_for(f'tnt_queue_service_seconds_count{{name="queue"}} == {total}')
    prometheus.wait_for('tnt_queue_tasks{name="queue",state="ready"} == 0')
    assert prometheus.query("up == 0") == []


def test_every_query_answers(server: RunningServer, prometheus: Prometheus) -> None:
    """Those of the dashboard have results, and the rules are evaluated without errors."""
    work(server.address)
    for panel in panels():
        for target in panel["targets"]:
            prometheus.wait_for(substituted(target["expr"]))
    prometheus.wait_for("count_over_time(up[30s]) > 3")
    evaluated = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
    assert len(evaluated) == len(rules())
    for rule in evaluated:
        assert (rule["health"], rule.get("lastError", "")) == ("ok", ""), rule
    assert {rule["name"] for rule in evaluated if rule["state"] == "firing"} == set()


def end_connections(address: str) -> None:
    """Take the first task with one connection after the other, and close each."""
    for _ in range(5):
        with IprotoClient.at(address) as client:
            assert client.call("queue.take", 20).data


def test_a_poison_task_is_named(server: RunningServer) -> None:
    with IprotoClient.at(server.address) as client:
        number = client.call("queue.put", "poison").data[0]["id"]
        end_connections(server.address)
        assert client.call("queue.take", 20).data  # when the last one has been given back
        told = metrics(http_port(server))
        assert told["tnt_queue_task_ended_connections"] == {("queue", str(number)): 5}
        [suspicious] = client.call("operator.queue", "queue").data[0]["suspicious"]
        assert suspicious == {"id": number, "connections": 5}
        assert client.call("operator.task", "queue", number).data[0]["details"] == {"ended_connections": 5}
    server.process.wait_for(rf"the task {number} of the queue queue has ended 5 connections of its consumers")


def test_every_series_of_the_queries_is_there(server: RunningServer) -> None:
    work(server.address)
    with IprotoClient.at(server.address) as client:
        assert client.call("operator.schedule", "nightly", {"queue": "queue", "cron": "0 0 1 1 *"}).ok
        client.call("queue.put", "poison")
    end_connections(server.address)
    assert queried() - metrics(http_port(server)).keys() == set()
