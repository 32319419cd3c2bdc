"""`box.evaluate_lua`: procedures in Python run Lua code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.iproto_client import IprotoClient
from tests.running_server import RunningServer

pytestmark = pytest.mark.process

APPLICATION = "tests.server.lua.evaluating_application:app"
SCRIPT = """\
box.cfg{}
box.schema.space.create('rows'):create_index('pk')
box.schema.user.grant('guest', 'super')
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("evaluating")
    (folder / "init.lua").write_text(SCRIPT)
    with RunningServer(folder, [str(folder / "init.lua"), APPLICATION]) as server:
        yield server


@pytest.fixture
def client(server: RunningServer) -> Iterator[IprotoClient]:
    with IprotoClient.at(server.address) as client:
        yield client


def test_arguments_and_results_are_values(client: IprotoClient) -> None:
    values = [1, 2**63, -(2**63), 1.5, "text", None, True, [1, None, 2], {"a": []}]
    assert client.call("evaluate", "return ...", *values).data == [values]
    assert client.call("evaluate", "return nil, 1, nil").data == [[None, 1, None]]
    assert client.call("evaluate", "").data == [[]]


def test_it_runs_in_the_transaction_and_as_the_caller(client: IprotoClient) -> None:
    code = "return box.session.id(), box.session.user(), box.is_in_txn()"
    [session] = client.call("box.session.id").data
    assert client.call("evaluate", code).data == [[session, "guest", True]]
    assert client.call("insert_and_fail").failure == (32, "undone")
    assert client.call("box.space.rows:len").data == [0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("error('on purpose')", "eval:1: on purpose"),
        ("box.error{code = 1234, reason = 'its own'}", "its own"),
        ("return print", "unsupported Lua type 'function'"),
        ("for", "eval:1: '<name>' expected near '<eof>'"),
        ("require('fiber').sleep(0.001)", "attempt to yield"),
        ("local function f() return f() + 1 end f()", "stack overflow"),
    ],
)
def test_errors_are_raised(client: IprotoClient, text: str, message: str) -> None:
    assert message in client.call("handle", text).data[0]


def test_a_server_without_lua(tmp_path_factory: pytest.TempPathFactory) -> None:
    with (
        RunningServer(tmp_path_factory.mktemp("plain"), [APPLICATION], ["--guest", "all"]) as server,
        IprotoClient.at(server.address) as client,
    ):
        assert client.call("handle", "return 1").data == ["this server runs no Lua code"]
