"""What Lua code does with rows leaves no objects of Python behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import tarantool

from tests.running_server import RunningServer

pytestmark = pytest.mark.process

ROUNDS = 20_000
SLACK = 2_000
"""Objects that caches and the log may hold at one moment and not at another."""

SPACE = """
box.cfg{}
box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})
local tasks = box.schema.space.create('tasks', {format = {{'id', 'unsigned'}, {'status', 'string'}}})
tasks:create_index('primary')
tasks:create_index('status', {parts = {{'status', 'string'}, {'id', 'unsigned'}}})
tasks:replace{1, 'ready'}
"""

COUNTING = """
import gc
import sys

from iproto_server import Application

app = Application('counting')


@app.procedure('blocks')
def blocks(box):
    gc.collect()
    return sys.getallocatedblocks()
"""

STATEMENTS = {
    "get": "box.space.tasks:get(1)",
    "select": "box.space.tasks.index.status:select({'ready'}, {limit = 1})",
    "pairs": "for _, task in box.space.tasks:pairs() do local _ = task.status end",
    "replace": "box.space.tasks:replace{1, 'ready'}",
    "insert and delete": "box.space.tasks:insert{2, 'ready'} box.space.tasks:delete(2)",
    "update": "box.space.tasks:update(1, {{'=', 'status', 'ready'}})",
    "upsert": "box.space.tasks:upsert({1, 'ready'}, {{'=', 2, 'ready'}})",
    "transaction": "box.begin() box.space.tasks:replace{1, 'ready'} box.rollback()",
    "error": "pcall(box.space.tasks.insert, box.space.tasks, {1, 'ready'})",
    "map": "box.space.tasks:get(1):tomap{names_only = true}",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("lua")
    (folder / "init.lua").write_text(SPACE)
    (folder / "counting.py").write_text(COUNTING)
    with RunningServer(
        folder, [str(folder / "init.lua"), "counting:app"], environment={"PYTHONPATH": str(folder)}
    ) as server:
        yield server


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_leave_no_objects(server: RunningServer, name: str) -> None:
    client: Any = tarantool.connect(server.host, server.port)
    loop = f"for _ = 1, ... do {STATEMENTS[name]} end"
    client.eval(loop, ROUNDS // 10)
    [before] = client.call("blocks")
    client.eval(loop, ROUNDS)
    [after] = client.call("blocks")
    client.close()
    assert after - before < SLACK
