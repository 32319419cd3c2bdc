"""All queues across reloads of a server's process: taken tasks stay taken, and old code is released."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import QUEUE_APPLICATION
from tests.server.applications.reloadable import send_call

PROBE = """
import gc
from types import FunctionType
from iproto_server import Application

app = Application("probe")

@app.procedure("functions")
def functions(box):
    gc.unfreeze()
    gc.collect()
    live = [each for each in gc.get_objects() if type(each) is FunctionType]
    return sum((each.__module__ or "").startswith("queue_lua_compat") for each in live)
"""

Call = tuple[Any, ...]


class Dialect(NamedTuple):
    """The calls of one queue; the answer to `take` has the task's id at the position `id`."""

    application: str
    prepare: Call | None
    put: Call
    take: Call
    wait: Call
    ack: Call
    id: int | str


DIALECTS = [
    Dialect(
        QUEUE_APPLICATION,
        None,
        ("queue.put", "data"),
        ("queue.take", 0),
        ("queue.take", 60),
        ("queue.ack",),
        "id",
    ),
    Dialect(
        "queue_lua_compat.legacy:app",
        None,
        ("queue.put", 0, "tube", 0, 0, 0, 0, "data"),
        ("queue.take", 0, "tube", 0),
        ("queue.take", 0, "tube", 60),
        ("queue.ack", 0),
        0,
    ),
    Dialect(
        "queue_lua_compat.tubes:app",
        ("queue.create_tube", "jobs", "fifottl"),
        ("queue.tube.jobs:put", "data"),
        ("queue.tube.jobs:take", 0),
        ("queue.tube.jobs:take", 60),
        ("queue.tube.jobs:ack",),
        0,
    ),
]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.application)
def test_a_queue_lives_on_over_reloads(start_server: StartServer, tmp_path: Path, dialect: Dialect) -> None:
    (tmp_path / "probe.py").write_text(PROBE)
    server = start_server([dialect.application, "probe:app"], work_dir=tmp_path)
    with IprotoClient.at(server.address) as holder, IprotoClient.at(server.address) as waiter:
        if dialect.prepare is not None:
            assert holder.call(*dialect.prepare).ok
        assert holder.call(*dialect.put).ok
        [taken] = holder.call(*dialect.take).data
        send_call(waiter, *dialect.wait)
        before = holder.call("functions").data[0]
        for generation in range(2, 7):
            assert holder.call("package.reload").data == [generation]
        # A waiting call may keep its own generation alive, but not all of them.
        assert holder.call("functions").data[0] <= 2 * before
        assert holder.call(*dialect.put).ok
        [waited] = waiter.receive().data
        assert waited[dialect.id] != taken[dialect.id]
        assert waiter.call(*dialect.ack, waited[dialect.id]).ok
        assert not waiter.call(*dialect.ack, taken[dialect.id]).ok
        assert holder.call(*dialect.ack, taken[dialect.id]).ok
        # The next reload releases what the waiting call kept alive.
        holder.call("package.reload")
        assert holder.call("functions").data[0] <= before  # fewer: procedures of tubes are found anew
