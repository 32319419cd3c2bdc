"""`box.cfg`, `box.info`, `box.stat` and their like of a running server, as clients call them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from iproto_server import Application, Box
from tests.conftest import StartServer
from tests.iproto_client import (
    CALL,
    EVENT_DATA,
    EVENT_KEY,
    FUNCTION_NAME,
    INSERT,
    PING,
    SELECT,
    TUPLE,
    WATCH,
    IprotoClient,
)
from tests.server.in_process import ServerInProcess

APPLICATION = "tests.server.application:app"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerInProcess]:
    application = Application("options")

    @application.procedure("option")
    def option(box: Box, name: str) -> object:
        return box.cfg[name]

    @application.procedure("options")
    def options(box: Box) -> object:
        return dict(box.cfg)

    @application.setup
    def setup(box: Box) -> None:
        box.schema.create_space("rows", if_not_exists=True).create_index("primary", if_not_exists=True)

    with ServerInProcess(tmp_path, [application]) as server:
        yield server


@pytest.fixture
def client(server: ServerInProcess) -> IprotoClient:
    return server.connect()


REFUSED: list[tuple[Any, int, str]] = [
    ({"wal_dir": "x"}, 58, "Can't set option 'wal_dir' dynamically"),
    ({"wal_mode": "none"}, 58, "Can't set option 'wal_mode' dynamically"),
    ({"wal_max_size": 1000}, 58, "Can't set option 'wal_max_size' dynamically"),
    ({"listen": 3301}, 58, "Can't set option 'listen' dynamically"),
    ({"nosuch": 1}, 59, "Incorrect value for option 'nosuch': unexpected option"),
    ({"apps": "a:b"}, 59, "Incorrect value for option 'apps': unexpected option"),
    ([5], 59, "Incorrect value for option '1': unexpected option"),
    ({"read_only": "x"}, 59, "Incorrect value for option 'read_only': should be of type boolean"),
    ({"read_only": 1}, 59, "Incorrect value for option 'read_only': should be of type boolean"),
    ({"net_msg_max": "x"}, 59, "Incorrect value for option 'net_msg_max': should be of type number"),
    ({"net_msg_max": True}, 59, "Incorrect value for option 'net_msg_max': should be of type number"),
    ({"net_msg_max": 1}, 59, "Incorrect value for option 'net_msg_max': minimal value is 2"),
    ({"log_format": "x"}, 59, "Incorrect value for option 'log_format': expected json,plain"),
    (
        {"log_level": "x"},
        59,
        "Incorrect value for option 'log_level': expected crit,warn,info,debug,syserror,verbose,fatal,error",
    ),
    (
        {"log_level": True},
        59,
        "Incorrect value for option 'log_level': must be a number or a string",
    ),
    (
        {"checkpoint_count": 0},
        59,
        "Incorrect value for option 'checkpoint_count': the value must not be less than one",
    ),
    (5, 32, "bad argument #1 to 'pairs' (table expected, got number)"),
    ("x", 32, "bad argument #1 to 'pairs' (table expected, got string)"),
]


def test_wrong_options_are_refused_in_tarantool_s_words(client: IprotoClient) -> None:
    before = client.call("options").data
    for options, code, text in REFUSED:
        assert client.call("box.cfg", options).failure == (code, text)
    assert client.call("options").data == before


def test_one_wrong_option_keeps_all_others_from_changing(client: IprotoClient) -> None:
    assert not client.call("box.cfg", {"net_msg_max": 1000, "nosuch": 1}).ok
    assert not client.call("box.cfg", {"net_msg_max": 1000, "wal_mode": "none"}).ok
    assert client.call("option", "net_msg_max").data == [768]


def test_options_that_can_change_do(server: ServerInProcess, client: IprotoClient) -> None:
    changes = {
        "net_msg_max": 1000,
        "checkpoint_count": 3,
        "checkpoint_interval": 60.5,
        "checkpoint_wal_threshold": 10**9,
        "snap_io_rate_limit": 1.5,
        "write_high_water": 5000,
        "stop_timeout": 1.5,
        "force_recovery": True,
    }
    assert client.call("box.cfg", changes).data == []
    for name, value in changes.items():
        assert client.call("option", name).data == [value]
        assert getattr(server.server.config, name) == value


def test_nothing_changes_by_values_that_are_in_force_or_none_at_all(client: IprotoClient) -> None:
    same = {"wal_mode": "write", "net_msg_max": 768.0}
    calls: list[list[Any]] = [[], [None], [{}], [[]], [same]]
    for arguments in calls:
        assert client.call("box.cfg", *arguments).data == []


def test_nil_is_the_default(client: IprotoClient) -> None:
    client.call("box.cfg", {"net_msg_max": 1000, "snap_io_rate_limit": 2})
    assert client.call("box.cfg", {"net_msg_max": None, "snap_io_rate_limit": None}).ok
    assert client.call("option", "net_msg_max").data == [768]
    assert "snap_io_rate_limit" not in client.call("options").data[0]


def test_snapshots_follow_the_options(client: IprotoClient, tmp_path: Path) -> None:
    client.call("box.cfg", {"checkpoint_count": 1})
    for number in range(3):
        client.request(INSERT, {0x10: client.space_id("rows"), 0x21: [number]})
        assert client.call("box.snapshot").data == ["ok"]
    assert len(list(tmp_path.glob("*.snap"))) == 1
    [gc] = client.call("box.info.gc").data
    [info] = client.call("box.info").data
    assert [each["signature"] for each in gc["checkpoints"]] == [info["signature"]]


def test_an_instance_becomes_read_only_and_writable_again(client: IprotoClient) -> None:
    client.send(WATCH, {EVENT_KEY: "box.status"})
    assert client.receive().body[EVENT_DATA]["is_ro"] is False
    client.send(WATCH, {EVENT_KEY: "box.status"})
    client.send(CALL, {FUNCTION_NAME: "box.cfg", TUPLE: [{"read_only": True}]})
    answers = [client.receive(), client.receive()]
    assert [answer.body[EVENT_DATA]["is_ro"] for answer in answers if EVENT_DATA in answer.body] == [True]
    insertion = {0x10: client.space_id("rows"), 0x21: [1]}
    text = "Can't modify data because this instance is in read-only mode."
    assert client.request(INSERT, insertion).failure == (7, text)
    [info] = client.call("box.info").data
    assert (info["ro"], info["ro_reason"]) == (True, "config")
    assert client.call("box.snapshot").data == ["ok"]
    assert client.call("box.cfg", {"read_only": False}).ok
    assert client.request(INSERT, insertion).ok


def test_a_server_that_starts_read_only_runs_its_setups(start_server: StartServer) -> None:
    server = start_server([APPLICATION], ["--read-only"])
    server.process.wait_for("ready to accept requests, read-only$")
    with IprotoClient.at(server.address) as client:
        assert client.call("box.info").data[0]["ro"] is True
        assert client.call("box.space.log:select").data == [[]]
        assert client.call("box.space.log:insert", [1, "text"]).error_code == 7


def test_the_log_changes_level_and_format(start_server: StartServer) -> None:
    server = start_server([APPLICATION])
    with IprotoClient.at(server.address) as client:
        client.call("box.cfg", {"log_format": "json"})
        client.call("break")
        server.process.wait_for(r"^\{.*break raised ZeroDivisionError")
        client.call("box.cfg", {"log_level": 1})
        client.call("unpackable")
        client.call("box.cfg", {"log_level": "fatal", "log_format": "plain"})
        client.call("break")
        client.call("box.cfg", {"log_level": 2})
        client.call("box.schema.nothing")
        client.call("break")
        server.process.wait_for(r"^\S+ error break raised ZeroDivisionError")
    errors = [line for line in server.process.lines if "break raised" in line]
    assert len(errors) == 2
    assert json.loads(errors[0])["level"] == "error"


def test_requests_are_counted(client: IprotoClient) -> None:
    client.call("box.stat.reset")
    [before] = client.call("box.stat").data
    assert before["CALL"]["total"] == 1
    for number in range(3):
        client.request(INSERT, {0x10: client.space_id("rows"), 0x21: [number]})
    client.request(SELECT, {0x10: 9999, 0x12: 1, 0x20: []})
    client.request(PING)
    [stat] = client.call("box.stat").data
    assert stat["INSERT"] == {"total": 3, "rps": 0}
    assert stat["SELECT"]["total"] == 4
    assert stat["ERROR"]["total"] == 1
    assert stat["CALL"]["total"] == 2
    assert set(before) == set(stat) >= {"REPLACE", "UPDATE", "DELETE", "UPSERT", "AUTH", "EVAL", "EXECUTE"}


def test_connections_and_bytes_are_counted(server: ServerInProcess, client: IprotoClient) -> None:
    [net] = client.call("box.stat.net").data
    assert net["CONNECTIONS"] == {"total": 1, "rps": 0, "current": 1}
    with ExitStack() as others:
        for _ in range(3):
            others.enter_context(server.connect())
        [after] = client.call("box.stat.net").data
    assert after["CONNECTIONS"]["total"] == 4
    assert after["SENT"]["total"] > net["SENT"]["total"] >= 0
    assert after["RECEIVED"]["total"] > net["RECEIVED"]["total"] > 0
    assert after["REQUESTS"]["total"] == net["REQUESTS"]["total"] + 1
    assert client.call("box.stat.net.thread").data[0][0].keys() == after.keys()


def test_memory_is_that_of_the_process(client: IprotoClient) -> None:
    [memory] = client.call("box.info.memory").data
    [slab] = client.call("box.slab.info").data
    [runtime] = client.call("box.runtime.info").data
    assert memory["data"] == slab["items_used"] > 0
    assert memory["lua"] > 10**6
    assert slab["items_used"] < slab["quota_used"] < slab["quota_size"]
    assert runtime["maxalloc"] == slab["quota_size"]
    assert slab["quota_used_ratio"].endswith("%")


def test_what_there_is_not_cannot_be_called(client: IprotoClient) -> None:
    for name in ("box.info.ro", "box.cfg.read_only", "box.info.nosuch", "box.stat.nosuch", "box.slab"):
        assert client.call(name).failure == (33, f"Procedure '{name}' is not defined")


def test_what_is_changed_is_in_the_log(start_server: StartServer) -> None:
    server = start_server([APPLICATION])
    with IprotoClient.at(server.address) as client:
        assert client.call("box.cfg", {"net_msg_max": 500, "read_only": True}).ok
        assert client.call("box.cfg", {"net_msg_max": 1}).failure[0] == 59
    server.process.wait_for(r"info set net_msg_max to 500$")
    server.process.wait_for(r"info set read_only to true$")
    assert "set net_msg_max to 1" not in server.process.output
