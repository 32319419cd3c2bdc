"""The operators' commands against a running server, another server, and none."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iproto_server.program_version import PROGRAM_VERSION
from iproto_server.text.counting import counted
from tests.command_line import Outcome, run
from tests.config.certificates import Certificates
from tests.conftest import StartServer, StartTarantool
from tests.differential.login import PASSWORD
from tests.iproto_client import IprotoClient
from tests.programs import REPOSITORY
from tests.running_server import QUEUE_APPLICATION, RunningServer

TUBES = "queue_lua_compat.tubes:app"
OPERATORS = "tests.server.operators.application:app"
NO_OPERATORS = "127.0.0.1:{} has no procedures for operators: it is an older server, or Tarantool"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("tubes"), [TUBES, OPERATORS], ["--guest", "all"]) as running:
        yield running


@pytest.fixture
def uri(server: RunningServer) -> str:
    return server.address


@pytest.fixture
def client(server: RunningServer) -> Iterator[IprotoClient]:
    """A client of a server with the empty tubes "jobs" and "failed"."""
    with IprotoClient.at(server.address) as client:
        for name, kind in (("jobs", "fifottl"), ("failed", "fifo")):
            assert client.call("queue.create_tube", name, kind, {"if_not_exists": True}).ok
            assert client.call(f"queue.tube.{name}:truncate").ok
        yield client


def ids_of(client: IprotoClient, *payloads: object) -> list[str]:
    """Put tasks, and return their ids."""
    return [str(client.call("queue.tube.jobs:put", data).data[0][0]) for data in payloads]


def lines(outcome: Outcome) -> list[Any]:
    """Return the values of a successful command's lines of JSON."""
    assert outcome.status == 0, outcome
    return [json.loads(line) for line in outcome.output.splitlines()]


def give(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let a command read a text from stdin."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


class TestCall:
    def test_arguments_are_json_or_else_strings(self, uri: str, client: IprotoClient) -> None:
        assert lines(run("call", uri, "queue.tube.jobs:put", '{"a": [1, null]}', '{"pri": 7}')) == [
            [0, "r", {"a": [1, None]}]
        ]
        assert lines(run("call", uri, "queue.tube.jobs:put", "plain text"))[0][2] == "plain text"
        assert lines(run("call", uri, "queue.tube.jobs:put", "-5"))[0][2] == -5
        assert lines(run("call", uri, "queue.tube.jobs:put", "NaN"))[0][2] == "NaN"

    def test_each_value_is_a_line_or_all_are_a_list(self, uri: str) -> None:
        assert lines(run("call", uri, "box.session.id"))[0] > 0
        assert lines(run("call", uri, "log.rotate")) == []
        assert lines(run("call", uri, "--json", "log.rotate")) == [[]]

    def test_an_error_of_the_server(self, uri: str) -> None:
        assert run("call", uri, "none") == (1, "", ["Procedure 'none' is not defined"])


class TestStatus:
    def test_the_state_and_the_queues(self, uri: str, client: IprotoClient) -> None:
        ids_of(client, "x")
        outcome = run("status", uri)
        assert outcome.status == 0
        assert f"{uri}, {PROGRAM_VERSION}, process" in outcome.output
        assert "jobs" in outcome.output
        [status] = lines(run("status", "--json", uri))
        assert [queue["name"] for queue in status["queues"]] == ["failed", "jobs"]
        assert status["read_only"] is False

    @pytest.mark.real_tarantool
    def test_of_a_real_tarantool(self, real_tarantool: StartTarantool) -> None:
        theirs = real_tarantool("box.schema.user.grant('guest', 'super')")
        address = f"{theirs.host}:{theirs.port}"
        [status] = lines(run("status", "--json", address))
        assert status["version"].startswith("Tarantool 2.")
        assert status["pid"] > 0
        assert "up" in run("status", address).output
        assert lines(run("call", address, "box.info"))[0]["ro"] is False
        expected = NO_OPERATORS.format(theirs.port)
        for command in (("tasks", address, "queue"), ("sessions", address), ("backlog", address)):
            assert run(*command) == (1, "", [expected])
        assert run("release", address, "queue", "1") == (1, "", [expected])
        assert run("top", "--json", address) == (1, "", [expected])


class TestTasks:
    def test_a_table(self, uri: str, client: IprotoClient) -> None:
        ids_of(client, {"to": "ann"}, "[bold]\x1b[31m\u202e")
        outcome = run("tasks", uri, "jobs", "--state", "ready")
        assert outcome.status == 0
        assert '{"to":"ann"}' in outcome.output
        assert '"[bold]\\u001b[31m\\x202e"' in outcome.output
        assert "\x1b" not in outcome.output
        assert outcome.errors == ["2 tasks"]

    def test_lines_of_json_over_several_pages(
        self, uri: str, client: IprotoClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("iproto_server.tools.operators.operator_client.PAGE", 2)
        ids_of(client, *range(5))
        assert [task["data"] for task in lines(run("tasks", "--json", uri, "jobs"))] == [0, 1, 2, 3, 4]
        assert len(lines(run("tasks", "--json", uri, "jobs", "--limit", 3))) == 3
        assert run("tasks", uri, "jobs", "--limit", 5).errors == ["5 tasks, maybe more: see --limit"]

    def test_old_ones(self, uri: str, client: IprotoClient) -> None:
        ids_of(client, "x")
        assert lines(run("tasks", "--json", uri, "jobs", "--older", "1h")) == []
        assert len(lines(run("tasks", "--json", uri, "jobs", "--older", "0"))) == 1

    @pytest.mark.parametrize("text", ["", "5x", "-1", "m", "1h5m"])
    def test_a_wrong_age(self, uri: str, text: str) -> None:
        outcome = run("tasks", uri, "jobs", "--older", text)
        assert outcome.status == 2
        assert f'"{text}" is not a duration such as 30s, 5m, 2h or 1d' in outcome.errors[0]

    def test_a_queue_that_is_not_there(self, uri: str) -> None:
        assert run("tasks", uri, "none") == (1, "", ['there is no queue "none"'])


class TestSessions:
    def test_who_holds_which_task(self, uri: str, client: IprotoClient) -> None:
        [task_id] = ids_of(client, "x")
        client.call("queue.tube.jobs:take")
        [session] = lines(run("sessions", "--json", "--holding", uri))
        assert session["id"] == client.call("box.session.id").data[0]
        assert [(task["queue"], str(task["id"])) for task in session["tasks"]] == [("jobs", task_id)]
        outcome = run("sessions", uri)
        assert outcome.status == 0
        assert session["peer"] in outcome.output
        assert session["tasks"][0]["touched_at"] is None
        client.call("queue.tube.jobs:touch", int(task_id), 5)
        [session] = lines(run("sessions", "--json", "--holding", uri))
        assert session["tasks"][0]["touched_at"] > session["tasks"][0]["taken_at"]
        for command in (["sessions", uri], ["tasks", uri, "jobs"]):
            assert "touched" in run(*command).output

    def test_more_than_are_shown(self, uri: str, client: IprotoClient) -> None:
        ids_of(client, *range(3))
        client.call("queue.tube.jobs:take_many", 3)
        assert "… 2 more" in run("sessions", uri, "--limit", 1).output

    def test_nobody(self, uri: str, client: IprotoClient) -> None:
        assert run("sessions", uri, "--holding") == (0, "", ["no session holds a task"])


class TestRepairs:
    def test_a_taken_task_is_released(self, uri: str, client: IprotoClient) -> None:
        [task_id] = ids_of(client, "x")
        client.call("queue.tube.jobs:take")
        assert run("release", uri, "jobs", task_id) == (0, "released 1 task\n", [])
        assert client.call("queue.tube.jobs:ack", int(task_id)).failure[1] == "Task was not taken"

    def test_several_need_a_yes(
        self, uri: str, client: IprotoClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ids = ids_of(client, *range(3))
        give(monkeypatch, "")
        outcome = run("bury", uri, "jobs", *ids)
        assert (outcome.status, outcome.errors) == (2, ["more than one task would be changed: give --yes"])
        assert run("bury", "--yes", uri, "jobs", *ids) == (0, "buried 3 tasks\n", [])
        assert run("kick", uri, "jobs", 2).status == 2
        assert run("kick", uri, "jobs", 1) == (0, "kicked 1 task\n", [])
        assert lines(run("kick", "-y", "--json", uri, "jobs", 5)) == [{"kicked": 2}]

    def test_ids_from_stdin(self, uri: str, client: IprotoClient, monkeypatch: pytest.MonkeyPatch) -> None:
        ids = ids_of(client, "a", "b")
        give(monkeypatch, f'{ids[0]}\n"{ids[1]}"\n\n')
        assert [task["data"] for task in lines(run("delete", "--yes", "--json", uri, "jobs", "-"))] == [
            "a",
            "b",
        ]
        give(monkeypatch, "\n")
        assert run("delete", "--yes", uri, "jobs", "-") == (1, "", ["there is no id on stdin"])

    def test_a_task_is_moved(self, uri: str, client: IprotoClient) -> None:
        [task_id] = ids_of(client, "x")
        assert run("move", uri, "jobs", "failed", task_id) == (0, "moved 1 task\n", [])
        assert [task["data"] for task in lines(run("tasks", "--json", uri, "failed"))] == ["x"]
        assert run("move", uri, "failed", "none", 0) == (1, "", ['there is no queue "none"'])

    def test_all_or_none(self, uri: str, client: IprotoClient) -> None:
        ids = ids_of(client, "a", "b")
        assert run("delete", "--yes", uri, "jobs", *ids, 99) == (
            1,
            "",
            ['there is no task 99 in the queue "jobs"'],
        )
        assert len(lines(run("tasks", "--json", uri, "jobs"))) == 2

    def test_many_are_kicked_a_thousand_at_a_time(
        self, uri: str, client: IprotoClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("iproto_server.tools.operators.operator_client.PAGE", 2)
        ids = ids_of(client, *range(5))
        assert run("bury", "--yes", uri, "jobs", *ids).output == "buried 5 tasks\n"
        assert run("kick", "--yes", uri, "jobs", 4).output == f"kicked {counted(4, 'task')}\n"
        assert run("kick", "--yes", uri, "jobs", 9).output == "kicked 1 task\n"


class TestQueues:
    def test_a_queue_is_paused_drained_and_resumed(self, uri: str, client: IprotoClient) -> None:
        for command, state in (("pause", "paused"), ("drain", "draining"), ("resume", "running")):
            assert run(command, uri, "jobs").output == f'the queue "jobs" is {state}\n'
            assert client.call("operator.queue", "jobs").data[0]["state"] == state

    def test_the_state_is_a_column_where_it_matters(self, uri: str, client: IprotoClient) -> None:
        assert "state" not in run("status", uri).output
        [paused] = lines(run("pause", uri, "jobs", "--json"))
        assert paused["state"] == "paused"
        assert "paused" in run("status", uri).output
        assert run("resume", uri, "jobs").status == 0

    def test_options_are_json_or_else_strings(self, uri: str, client: IprotoClient) -> None:
        pauses = 'disconnect_retry={"delay": 7, "max_delay": 60}'
        given = ("release_limit=1", "release_limit_policy=DLQ", 'retry={"delay": 5}', pauses)
        assert run("configure", uri, "jobs", *given).output.splitlines() == [
            pauses,
            "release_limit=1",
            "release_limit_policy=DLQ",
            'retry={"delay": 5}',
        ]
        [number] = ids_of(client, "poison")
        client.call("queue.tube.jobs:take", 0)
        assert client.call("queue.tube.jobs:release", int(number)).data[0][1] == "-"
        assert run("requeue", uri, "jobs_dlq", number).output == "put back 1 task\n"
        assert client.call("operator.task", "jobs", number).data[0]["state"] == "ready"
        restored = [f"{option.partition('=')[0]}=null" for option in given]
        assert lines(run("configure", uri, "jobs", *restored, "--json"))[0]["settings"] == {}
        assert client.call("queue.tube.jobs_dlq:drop").ok

    @pytest.mark.parametrize(
        ("arguments", "status", "error"),
        [
            (["configure", "jobs", "release_limit"], 2, '"release_limit" is not NAME=VALUE'),
            (["configure", "jobs", "=5"], 2, '"=5" is not NAME=VALUE'),
            (["configure", "jobs"], 2, "Missing argument"),
            (["configure", "jobs", "relaese_limit=5"], 1, 'has no option "relaese_limit"'),
            (["configure", "jobs", "release_limit=many"], 1, "release_limit must be a whole number"),
            (["configure", "failed", "retry={}"], 1, "have no delays"),
            (["pause", "nothing"], 1, 'there is no queue "nothing"'),
            (["requeue", "jobs", "1"], 1, "has no requeue"),
        ],
    )
    def test_wrong_input(
        self, uri: str, client: IprotoClient, arguments: list[str], status: int, error: str
    ) -> None:
        command, *rest = arguments
        outcome = run(command, uri, *rest)
        assert outcome.status == status
        assert error in outcome.errors[0]


class TestTop:
    def test_looks_with_rates_for_scripts(self, uri: str, client: IprotoClient) -> None:
        ids_of(client, "x")
        first, second = lines(run("top", "--json", "--count", 2, "--interval", 0.1, uri))
        assert first["time"] < second["time"]
        assert [queue["rates"] for queue in first["queues"]] == [{}, {}]
        assert second["queues"][1]["rates"]["put"] == 0.0
        assert second["queues"][1]["tasks"]["ready"] == 1


class TestAccess:
    @pytest.fixture
    def plain(self, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
        monkeypatch.delenv("TT_CLI_USERNAME", raising=False)
        monkeypatch.delenv("TT_CLI_PASSWORD", raising=False)
        give(monkeypatch, "")
        return monkeypatch

    def test_a_password_in_the_uri(self, uri: str, plain: pytest.MonkeyPatch) -> None:
        assert run("status", f"reader:{PASSWORD}@{uri}").status == 0

    def test_a_password_in_the_environment(self, uri: str, plain: pytest.MonkeyPatch) -> None:
        plain.setenv("TT_CLI_PASSWORD", PASSWORD)
        assert run("status", f"reader@{uri}").status == 0
        plain.setenv("TT_CLI_USERNAME", "reader")
        assert run("status", uri).status == 0
        assert run("delete", uri, "jobs", 1).errors == [
            "Write access to universe '' is denied for user 'reader'"
        ]

    def test_a_wrong_password_is_not_shown(self, uri: str, plain: pytest.MonkeyPatch) -> None:
        outcome = run("status", f"reader:wr0ng@{uri}")
        assert outcome.status == 1
        assert outcome.errors[0].startswith(f"{uri} refuses the login of user reader: ")
        assert "wr0ng" not in outcome.errors[0]

    def test_without_rights(self, uri: str, plain: pytest.MonkeyPatch) -> None:
        assert run("status", f"caller:{PASSWORD}@{uri}").errors == [
            "Read access to universe '' is denied for user 'caller'"
        ]

    @pytest.mark.parametrize(
        "uri",
        ["nowhere", ":pw@h:1", "h:0", "h:1?ssl_ca_file=x", "h:1?transport=tls", "h:1?x=1", "h:1?transport="],
    )
    @pytest.mark.parametrize("command", ["status", "backlog"])
    def test_a_uri_that_is_none(self, command: str, uri: str) -> None:
        outcome = run(command, uri)
        assert outcome.status == 2
        assert "pw" not in outcome.errors[0]

    @pytest.mark.process
    def test_nobody_listens(self) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
            assert run("status", f"127.0.0.1:{port}") == (
                1,
                "",
                [f"cannot connect to 127.0.0.1:{port}: Connection refused"],
            )

    def test_a_unix_socket(self, start_server: StartServer, tmp_path: Path) -> None:
        server = start_server([QUEUE_APPLICATION], listen=f"unix:{tmp_path}/s")
        [status] = lines(run("status", "--json", f"unix:{tmp_path}/s"))
        assert status["pid"] == server.process.pid

    def test_tls(self, start_server: StartServer, tmp_path: Path) -> None:
        certificates = Certificates(tmp_path)
        server = start_server([QUEUE_APPLICATION], listen=certificates.listen())
        uri = f"{server.address}?transport=ssl&ssl_ca_file={certificates.authority}"
        assert lines(run("call", uri, "queue.stats"))[0]["total"] == 0
        other = f"{server.address}?transport=ssl&ssl_ca_file={certificates.stranger}"
        assert run("call", other, "queue.stats").status == 1


def test_an_older_server_and_a_connection_that_breaks(uri: str, client: IprotoClient) -> None:
    """A server that answers nothing any more ends a command with one line."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen(
            [sys.executable, "-m", "iproto_server", "status", address],
            cwd=REPOSITORY,
            stderr=subprocess.PIPE,
            text=True,
        )
        connection, _ = silent.accept()
        connection.close()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors.startswith(f"iproto-server: cannot connect to {address}: ")
    assert len(errors.splitlines()) == 1


@pytest.mark.parametrize(("shell", "mark"), [("bash", "complete"), ("zsh", "#compdef"), ("fish", "complete")])
def test_shell_completion(shell: str, mark: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "iproto_server"],
        cwd=REPOSITORY,
        env={"PATH": "/usr/bin:/bin", "_IPROTO_SERVER_COMPLETE": f"{shell}_source"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert mark in done.stdout
    words = {"COMP_WORDS": "iproto-server ta", "COMP_CWORD": "1", "_IPROTO_SERVER_COMPLETE": "bash_complete"}
    found = subprocess.run(
        [sys.executable, "-m", "iproto_server"],
        cwd=REPOSITORY,
        env=words,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "plain,tasks\n"


@pytest.mark.parametrize(
    "name",
    [
        *("backlog", "bury", "call", "delete", "kick", "move"),
        *("release", "sessions", "status", "tasks", "top"),
    ],
)
def test_help_has_examples_and_says_what_a_uri_is(name: str) -> None:
    outcome = run(name, "--help")
    assert outcome.status == 0
    assert f"\nExamples:\n  iproto-server {name} " in outcome.output
    assert "TT_CLI_PASSWORD" in outcome.output
    assert all(len(line) <= 100 for line in outcome.output.splitlines())
