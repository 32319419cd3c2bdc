"""`/metrics` of a running server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from tests.conftest import StartServer
from tests.iproto_client import (
    BEGIN,
    CALL,
    DELETE,
    FUNCTION_NAME,
    INDEX_ID,
    INSERT,
    ITERATOR,
    KEY,
    LIMIT,
    PING,
    SELECT,
    SPACE_ID,
    STREAM_ID,
    TUPLE,
    IprotoClient,
)
from tests.running_server import QUEUE_APPLICATION, RunningServer
from tests.server.http.http_client import HTTP, http_port, metrics, request, values

APPLICATIONS = ("tests.server.http.metrics_application:app", "tests.server.http.metrics_application:other")
TOKEN = "0123456789abcdef-the-token"


@pytest.fixture(scope="module")
def applications() -> Sequence[str]:
    return [QUEUE_APPLICATION, *APPLICATIONS]


@pytest.fixture(scope="module")
def server_options() -> Sequence[str]:
    return HTTP


@pytest.fixture(scope="module")
def port(server: RunningServer) -> int:
    return http_port(server)


@pytest.fixture
def client(server: RunningServer) -> Iterator[IprotoClient]:
    with IprotoClient.at(server.address) as client:
        yield client


OF_TARANTOOL = {
    "tnt_cfg_current_time": (),
    "tnt_config_status": ("status",),
    "tnt_cpu_system_time": (),
    "tnt_cpu_user_time": (),
    "tnt_ev_loop_time": (),
    "tnt_info_lsn": (),
    "tnt_info_memory_cache": (),
    "tnt_info_memory_data": (),
    "tnt_info_memory_index": (),
    "tnt_info_memory_lua": (),
    "tnt_info_memory_net": (),
    "tnt_info_memory_tx": (),
    "tnt_info_uptime": (),
    "tnt_info_vclock": ("id",),
    "tnt_memory": (),
    "tnt_memory_virt": (),
    "tnt_net_connections_current": (),
    "tnt_net_connections_total": (),
    "tnt_net_per_thread_sent_total": ("thread",),
    "tnt_net_received_total": (),
    "tnt_net_requests_current": (),
    "tnt_net_requests_in_progress_current": (),
    "tnt_net_requests_in_progress_total": (),
    "tnt_net_requests_in_stream_queue_current": (),
    "tnt_net_requests_in_stream_queue_total": (),
    "tnt_net_requests_total": (),
    "tnt_net_sent_total": (),
    "tnt_read_only": (),
    "tnt_runtime_lua": (),
    "tnt_runtime_used": (),
    "tnt_slab_arena_size": (),
    "tnt_slab_arena_used": (),
    "tnt_slab_arena_used_ratio": (),
    "tnt_slab_items_size": (),
    "tnt_slab_items_used": (),
    "tnt_slab_items_used_ratio": (),
    "tnt_slab_quota_size": (),
    "tnt_slab_quota_used": (),
    "tnt_slab_quota_used_ratio": (),
    "tnt_space_bsize": ("engine", "name"),
    "tnt_space_index_bsize": ("index_name", "name"),
    "tnt_space_len": ("engine", "name"),
    "tnt_space_total_bsize": ("engine", "name"),
    "tnt_stats_op_total": ("operation",),
}
"""Series of Tarantool's module, with their labels beside `alias`."""


def test_the_series_of_tarantool_are_there_with_their_labels(server: RunningServer, port: int) -> None:
    labels: dict[str, set[tuple[str, ...]]] = {}
    for family in parse_openmetrics(openmetrics(port)):  # type: ignore[no-untyped-call]
        for sample in family.samples:
            assert sample.labels["alias"] == server.address
            labels.setdefault(sample.name, set()).add(tuple(sorted(sample.labels.keys() - {"alias"})))
    for name, expected in OF_TARANTOOL.items():
        assert labels[name] == {expected}, name


def openmetrics(port: int) -> str:
    answer = request(port, "/metrics", headers={"Accept": "application/openmetrics-text"})
    assert answer.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert answer.text.endswith("\n# EOF\n")
    return answer.text


@pytest.mark.parametrize("path", ["/metrics", "/metrics/prometheus"])
def test_the_format_is_that_of_prometheus(port: int, path: str) -> None:
    answer = request(port, path)
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "# EOF" not in answer.text
    assert request(port, path, "HEAD").headers["content-length"]


def test_the_name_of_the_instance_is_the_alias(start_server: StartServer) -> None:
    server = start_server(options=[*HTTP, "--instance-name", "queue-1"])
    text = request(http_port(server), "/metrics").text
    assert 'tnt_info_uptime{alias="queue-1"}' in text
    assert server.address not in text


def test_counters_are_the_requests_that_were_sent(client: IprotoClient, port: int) -> None:
    space = client.space_id("queue")
    before = metrics(port)
    for _ in range(7):
        assert client.request(PING).ok
    for number in range(5):
        assert client.call("queue.put", number).ok
    assert not client.call("no.such.procedure").ok
    assert client.request(SELECT, {SPACE_ID: space, INDEX_ID: 0, KEY: [], ITERATOR: 2, LIMIT: 10}).ok
    assert client.request(INSERT, {SPACE_ID: space, TUPLE: ["wrong"]}).ok is False
    assert client.request(DELETE, {SPACE_ID: space, INDEX_ID: 0, KEY: [10**6]}).ok
    after = metrics(port)

    def grown(name: str, *labels: str) -> float:
        return after[name][labels] - before[name].get(labels, 0)

    assert grown("tnt_net_requests_total") == grown("tnt_net_requests_in_progress_total") == 16
    operations = {name[0]: grown("tnt_stats_op_total", *name) for name in after["tnt_stats_op_total"]}
    assert {name: count for name, count in operations.items() if count} == {
        "call": 6,
        "select": 1,
        "insert": 1,
        "delete": 1,
        "error": 2,
    }
    assert grown("iproto_server_requests_total", "ping") == 7
    assert grown("tnt_info_lsn") == grown("tnt_info_vclock", "1") == 5
    assert grown("tnt_space_len", "memtx", "queue") == 5
    assert grown("tnt_net_received_total") > 16 * 10
    assert grown("tnt_net_sent_total") > 16 * 10
    assert after["tnt_net_connections_current"] == {(): 1}
    assert after["tnt_net_requests_current"] == {(): 0}


def test_requests_in_flight_and_in_streams(client: IprotoClient, port: int) -> None:
    client.send(CALL, {FUNCTION_NAME: "wait", TUPLE: []}, {STREAM_ID: 1})
    for _ in range(3):
        client.send(BEGIN, {}, {STREAM_ID: 1})
    assert client.request(PING).ok
    told = metrics(port)
    assert told["tnt_net_requests_current"][()] >= 1
    assert told["tnt_net_requests_in_stream_queue_current"] == {(): 3}
    assert told["tnt_net_requests_in_stream_queue_total"] == {(): 3}


def test_spaces_and_indexes(client: IprotoClient, port: int) -> None:
    assert client.call("strange_spaces").ok
    told = metrics(port)
    names = {'quoted " name', "back\\slash", "ж"}
    assert {name for _, name in told["tnt_space_len"]} >= names | {"queue"}
    assert not {"without index", "temporary", "_hidden"} & {name for _, name in told["tnt_space_len"]}
    for name in names:
        space = ("memtx", name)
        assert told["tnt_space_len"][space] == 10
        assert told["tnt_space_bsize"][space] == client.call(f"box.space.{name}:bsize").data[0] > 1000
        indexes = [told["tnt_space_index_bsize"][(index, name)] for index in ("primary", "second")]
        assert told["tnt_space_total_bsize"][space] == told["tnt_space_bsize"][space] + sum(indexes)


def test_indexes_have_a_size(client: IprotoClient, port: int) -> None:
    for number in range(1000):
        client.call("queue.put", number)
    sizes = metrics(port)["tnt_space_index_bsize"]
    assert all(sizes[(index, "queue")] > 1000 for index in ("primary", "status", "runat"))


def test_memory_is_that_of_box(client: IprotoClient, port: int) -> None:
    told, slab = metrics(port), client.call("box.slab.info").data[0]
    for name in ("items_used", "items_size", "arena_used", "arena_size", "quota_size", "quota_used"):
        assert told[f"tnt_slab_{name}"][()] == pytest.approx(slab[name], rel=0.5)
    assert 0 < told["tnt_memory"][()] < told["tnt_memory_virt"][()]
    assert told["tnt_runtime_used"][()] == pytest.approx(told["tnt_memory"][()], rel=0.1)


@pytest.mark.parametrize("options", [(), ("--memtx-memory", "64M")])
def test_ratios_follow_the_data(start_server: StartServer, options: Sequence[str]) -> None:
    server = start_server([QUEUE_APPLICATION], [*HTTP, *options])
    port = http_port(server)
    empty = metrics(port)
    with IprotoClient.at(server.address) as client:
        for _ in range(1000):
            assert client.call("queue.put", "x" * 10_000).ok
    full = metrics(port)
    for told in (empty, full):
        for name in ("items", "arena", "quota"):
            used, size = told[f"tnt_slab_{name}_used"][()], told[f"tnt_slab_{name}_size"][()]
            assert told[f"tnt_slab_{name}_used_ratio"][()] == pytest.approx(100 * used / size, abs=0.06)
            assert used < size
    assert full["tnt_slab_quota_used"][()] > empty["tnt_slab_quota_used"][()] + 9_000_000
    if options:
        assert full["tnt_slab_quota_size"] == {(): 64 * 2**20}
        assert 14 < full["tnt_slab_quota_used_ratio"][()] < 60


def test_read_only_is_told(start_server: StartServer) -> None:
    assert metrics(http_port(start_server(options=HTTP)))["tnt_read_only"] == {(): 0}
    assert metrics(http_port(start_server(options=[*HTTP, "--read-only"])))["tnt_read_only"] == {(): 1}


def test_the_configuration_is_ready(port: int) -> None:
    statuses = metrics(port)["tnt_config_status"]
    assert [status for (status,), value in statuses.items() if value] == ["ready"]
    assert len(statuses) == 6


def work_on_tasks(client: IprotoClient) -> None:
    """Leave two tasks ready, one taken and one delayed; one is done."""
    for number in range(4):
        client.call("queue.put", number)
    client.call("queue.put", 5, {"delay": 60})
    first = client.call("queue.take").data[0]["id"]
    client.call("queue.take")
    assert client.call("queue.ack", first).ok


def test_the_tutorials_queue(start_server: StartServer) -> None:
    server = start_server([QUEUE_APPLICATION], HTTP)
    with IprotoClient.at(server.address) as client:
        work_on_tasks(client)
        told = metrics(http_port(server))
    assert told["tnt_queue_tasks"][("queue", "ready")] == 2
    assert told["tnt_queue_tasks"][("queue", "taken")] == 1
    assert told["tnt_queue_tasks"][("queue", "delayed")] == 1
    assert told["tnt_queue_calls_total"][("put", "queue")] == 5
    assert told["tnt_queue_calls_total"][("take", "queue")] == 2
    assert told["tnt_queue_consumers_waiting"] == {("queue",): 0}
    assert told["tnt_queue_oldest_ready_seconds"][("queue",)] > 0
    assert told["tnt_queue_wait_seconds_count"] == {("queue",): 2}
    assert told["tnt_queue_service_seconds_count"] == {("queue",): 1}
    assert told["tnt_queue_left_out"] == {(): 0}


def test_queues_can_be_left_out(start_server: StartServer) -> None:
    server = start_server([QUEUE_APPLICATION], [*HTTP, "--metrics-max-queues", "0"])
    told = metrics(http_port(server))
    assert told["tnt_queue_left_out"] == {(): 1}
    assert {name for name in told if name.startswith("tnt_queue_")} == {
        "tnt_queue_left_out",
        "tnt_queue_schedules",
    }


def test_metrics_of_applications(client: IprotoClient, server: RunningServer, port: int) -> None:
    for reason in ("timeout", 'a "b"', "timeout"):
        assert client.call("count", reason).ok
    told = metrics(port)
    assert told["jobs_failed_total"] == {("timeout",): 2, ('a "b"',): 1}
    assert told["jobs_duration_bucket"] == {("0.5",): 0, ("5.0",): 3, ("+Inf",): 3}
    assert (told["jobs_duration_count"], told["jobs_duration_sum"]) == ({(): 3}, {(): 3})
    assert told["my_app_answers_given"] == {(): 42}
    assert told["my_app_ready"] == {(): 0.5}
    assert told["my_app_jobs__"] == {(): 1}
    assert told["queue_ready"] == {(): told["tnt_queue_tasks"][("queue", "ready")]}
    # A name is there once: the first one stays.
    assert told["jobs_open"] == {(): -2.5}
    metrics(port)
    assert server.process.output.count("the metric jobs_open is left out: the name is taken") == 1


def test_an_application_that_fails_takes_only_its_own_metrics_away(start_server: StartServer) -> None:
    server = start_server([QUEUE_APPLICATION, *APPLICATIONS], HTTP)
    with IprotoClient.at(server.address) as client:
        client.call("fail")
    told = metrics(http_port(server))
    assert "my_app_ready" not in told
    assert told["queue_ready"] == {(): 0}


def test_many_spaces(client: IprotoClient, port: int) -> None:
    """All are there, and clients are served while the page is written."""
    assert client.call("spaces", 500).ok
    told = metrics(port)
    for number in range(500):
        assert told["tnt_space_len"][("memtx", f"space {number}")] == 0
        assert ("primary", f"space {number}") in told["tnt_space_index_bsize"]


def test_every_counter_of_graphite_is_there_too(start_server: StartServer) -> None:
    """A counter without an entry in the tables would be an error of the page."""
    server = start_server(options=[*HTTP, "--graphite", "127.0.0.1:9", "--graphite-protocol", "udp"])
    told = metrics(http_port(server))
    assert told["iproto_server_graphite_dropped_total"][()] >= 0
    assert told["iproto_server_wal_failures_total"] == {(): 0}
    assert set(told["iproto_server_connections_refused_total"]) == {
        ("descriptors",),
        ("max_connections",),
        ("max_connections_per_address",),
        ("max_connections_per_user",),
    }
    assert ("memtx_memory",) in told["iproto_server_refused_total"]


# -- who may read them --


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    return file


def test_a_token_is_asked_for(start_server: StartServer, token_file: Path) -> None:
    server = start_server(options=[*HTTP, "--metrics-token-file", str(token_file), "--log-level", "debug"])
    port = http_port(server)
    refused: list[dict[str, str]] = [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": "Bearer \xff"},
    ]
    for headers in refused:
        for path in ("/metrics", "/metrics/prometheus"):
            answer = request(port, path, headers=headers)
            assert (answer.status, answer.text) == (401, "the metrics need a token\n")
            assert answer.headers["www-authenticate"] == "Bearer"
    for scheme in ("Bearer", "bearer"):
        answer = request(port, "/metrics", headers={"Authorization": f"{scheme} {TOKEN}"})
        assert answer.status == 200
        assert TOKEN not in answer.text
    assert request(port, "/health").status == request(port, "/ready").status == 200
    assert "refused the metrics: no valid token peer=127.0.0.1" in server.process.output
    assert TOKEN[:-1] not in server.process.output


def test_the_metrics_have_an_address_of_their_own(start_server: StartServer) -> None:
    server = start_server(options=[*HTTP, "--metrics-listen", "127.0.0.1:0"])
    main, own = http_port(server), http_port(server, "HTTP for metrics")
    assert (request(main, "/metrics").status, request(own, "/metrics").status) == (404, 200)
    for port in (main, own):
        assert request(port, "/health").status == request(port, "/ready").status == 200


def test_the_metrics_alone(start_server: StartServer) -> None:
    server = start_server(options=["--metrics-listen", "127.0.0.1:0"])
    assert values(request(http_port(server, "HTTP for metrics"), "/metrics").text)["tnt_read_only"] == {(): 0}


def test_secrets_do_not_appear(start_server: StartServer) -> None:
    server = start_server(["tests.server.accounts:app"], [*HTTP, "--guest", "none"])
    text = request(http_port(server), "/metrics").text
    for secret in ("password", "secret", "chap-sha1"):
        assert secret not in text
