"""The consumers of tubes and the batches complete all tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.peers.queue_server import ModuleQueue, OurQueue, QueueContender, QueueServer, module
from bench.scenarios.queues import batches, tubes
from bench.workloads.consumers import consume
from tests.programs import require_program
from tests.queue_lua_compat.real_tubes import CHECKOUT


@pytest.fixture(params=["ours", pytest.param("the module", marks=pytest.mark.real_tarantool)])
def contender(request: pytest.FixtureRequest) -> QueueContender:
    """Each of those that are compared."""
    if request.param == "ours":
        return OurQueue()
    require_program("tarantool", "tarantool")
    peer: ModuleQueue | None = module()
    if peer is None:
        pytest.skip(f"{CHECKOUT} names no checkout of https://github.com/tarantool/queue")
    return peer


@pytest.mark.parametrize("driver", ["utube", "utubettl"])
def test_consumers_do_all_tasks(contender: QueueContender, tmp_path: Path, driver: str) -> None:
    with QueueServer(contender, tmp_path / "data") as server:
        contender.create_tube(server.connection, "jobs", driver, {"temporary": True})
        for utube in ("a", "b", "c"):
            contender.fill(server.connection, "jobs", utube, 20)
        assert consume(server.address, "jobs", 4, 60) > 0
        [statistics] = server.connection.call("queue.statistics", "jobs")
        assert statistics["tasks"]["total"] == 0
        assert statistics["calls"]["ack"] == 60


def test_there_is_a_figure_for_every_number_of_tasks(tmp_path: Path) -> None:
    measured = list(tubes.measure(OurQueue(), "default", [2, 3], 2, "utube", tmp_path / "data"))
    assert [(each.size, each.task_us > 0, each.server_us > 0) for each in measured] == [
        (2, True, True),
        (3, True, True),
    ]
    time_of_a_task, *_ = tubes.tables(measured, [2, 3])
    assert time_of_a_task.splitlines()[0] == "µs per task, take and ack"


@pytest.mark.parametrize("queue", batches.QUEUES, ids=lambda queue: str(queue.name))
def test_batches_do_all_tasks(tmp_path: Path, queue: batches.QueueProcedures) -> None:
    rates = list(batches.measure(queue, tmp_path / "data", 100))
    assert [each.operation for each in rates] == ["put", "take", "ack"]
    assert all(each.single > 0 and each.many > 0 for each in rates)
