"""The queues that Lua code keeps, read from the files of its server."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_tarantool.queues import queue_kind
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.server.lua.queues.conftest import GUEST, MODULE, SCRIPTS, TUBE, TUTORIAL, modules_of


@pytest.mark.parametrize(
    ("kind", "dialect", "name"),
    [(TUTORIAL, "tutorial", "queue"), (TUBE, "tubes", "mail"), (MODULE, "tubes", "mail")],
)
def test_tasks_of_lua_code(
    spark: SparkSession, start_server: StartServer, tmp_path: Path, kind: str, dialect: str, name: str
) -> None:
    modules = modules_of(kind)
    script = tmp_path / "init.lua"
    search = f"package.path = '{modules}/?.lua;{modules}/?/init.lua;' .. package.path\n"
    script.write_text(GUEST + search + SCRIPTS[kind])
    folder = tmp_path / "data"
    folder.mkdir()
    server = start_server([str(script)], work_dir=folder)
    prefix = "queue." if kind == TUTORIAL else "queue.tube.mail:"
    with IprotoClient.at(server.address) as client:
        for data in ("first", "second", "third"):
            assert client.call(f"{prefix}put", data).ok
        assert client.call(f"{prefix}take", 0).ok
        tasks = queue_kind(dialect).tasks(spark, str(folder), {})
        counted = {row.status: row["count"] for row in tasks.groupBy("queue", "status").count().collect()}
    assert counted == {"ready": 2, "taken": 1}
    assert {row.queue for row in tasks.collect()} == {name}
