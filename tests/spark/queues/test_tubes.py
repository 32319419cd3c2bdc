"""Events of tubes, in logs of this server and of a real Tarantool with the queue module."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyspark_tarantool.queues.dialect import CREATED, DATA, DUE, ID, PRIORITY, STATUS, TTL, QueueSpace
from pyspark_tarantool.queues.stored_queue import _in_files
from pyspark_tarantool.queues.tubes import Tubes
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.schema.definitions import Definitions, SpaceDefinition
from tests.spark.queues.logs import Log, micros, told

TIMES = ("task_id", "status", "next_event", "ttl", "ttr", "pri", "created")
FIFO = QueueSpace(512, "fifo", ("task_id", "status", "data"), {ID: 0, STATUS: 1, DATA: 2})
FIFOTTL = QueueSpace(
    513, "timed", (*TIMES, "data"), {ID: 0, STATUS: 1, DUE: 2, TTL: 3, PRIORITY: 5, CREATED: 6, DATA: 7}
)
DROPPED = QueueSpace(514, "again", FIFO.names, FIFO.meanings)
CREATED_AGAIN = QueueSpace(515, "again", FIFO.names, FIFO.meanings)
FOR_EVER = 3_153_600_000_000_000
NEVER = 2**64 - 1


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Some tubes, and tasks with the same numbers in each of them."""
    log = Log(FIFO.id)
    log.at(0).insert(0, "r", "data")
    log.at(1).update(0, ["=", 1, "t"])
    log.at(2).update(0, ["=", 1, "r"])
    log.at(3).update(0, ["=", 1, "!"])
    log.at(4).update(0, ["=", 1, "r"])
    log.at(5).update(0, ["=", 1, "t"])
    log.at(6).delete(0)
    log.at(7).insert(0, "r", "again")
    log.at(8).replace(0, "t", "again")
    log.at(9).delete(0)
    log.at(10).insert(0, "r", "third")
    log.space_id = FIFOTTL.id
    # A real Tarantool: delays, touches, times to run; its numbers may be too large for 64 bits with a sign.
    log.at(0).insert(0, "~", micros(10), NEVER, 5_000_000, 0, micros(), "data")
    log.at(10.5).update(0, ["=", 1, "r"], ["=", 2, NEVER])
    log.at(11).update(0, ["=", 1, "t"], ["=", 2, micros(16)])
    log.at(12).update(0, ["+", 2, 3_000_000], ["+", 3, 3_000_000], ["+", 4, 3_000_000])
    log.at(13).update(0, ["+", 2, 1_000_000], ["+", 3, 1_000_000], ["+", 4, 1_000_000])
    log.at(20.001).update(0, ["=", 1, "r"], ["=", 2, NEVER])
    log.at(21).update(0, ["=", 1, "t"], ["=", 2, micros(30)])
    log.at(22).update(0, ["=", 1, "~"], ["=", 2, micros(40)], ["+", 3, 18_000_000])
    # A life that a touch makes longer, and its end; as this server logs it.
    log.at(0).insert(1, "r", micros(10), 10_000_000, 5_000_000, 0, micros(), "data")
    log.at(1).replace(1, "t", micros(6), 10_000_000, 5_000_000, 0, micros(), "data")
    log.at(2).replace(1, "t", micros(8), 12_000_000, 7_000_000, 0, micros(), "data")
    log.at(3).replace(1, "r", micros(12), 12_000_000, 7_000_000, 0, micros(), "data")
    log.at(11).insert(2, "r", micros(12), 1_000_000, 5_000_000, 0, micros(11), "data")
    log.at(12).delete(1)
    log.at(11.5).delete(2)
    # Acknowledged after the end of its life: a taken task does not expire.
    log.at(0).insert(3, "r", micros(2), 2_000_000, 5_000_000, 0, micros(), "data")
    log.at(1).update(3, ["=", 1, "t"], ["=", 2, micros(2)])
    log.at(2).delete(3)
    # A tube that was dropped, and made again with the same name.
    log.space_id = DROPPED.id
    log.at(0).insert(0, "r", "data")
    log.at(1).insert(1, "r", "data")
    log.at(2).update(0, ["=", 1, "t"])
    log.at(3).delete(0)
    log.at(4).drop()
    log.space_id = CREATED_AGAIN.id
    log.at(5).insert(0, "r", "data")
    log.at(6).insert(1, "r", "data")
    spaces = [FIFO, FIFOTTL, DROPPED, CREATED_AGAIN]
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for task in log.events(spark, spaces, Tubes.dialect).values():
        for event in task:
            found.setdefault((event["queue"], event["id"]), []).append(event)
    return found


def test_a_number_is_given_again(events: dict[tuple[str, str], list[dict[str, Any]]]) -> None:
    task = events["fifo", "0"]
    first = ["put", "taken", "released", "buried", "kicked", "taken", "acked"]
    assert told(task, "life") == [
        *((event, 1) for event in first),
        ("put", 2),
        ("taken", 2),
        ("acked", 2),
        ("put", 3),
    ]
    assert [event["number"] for event in task] == list(range(1, 12))


def test_touches_of_a_real_tarantool_add_up(
    events: dict[tuple[str, str], list[dict[str, Any]]],
) -> None:
    assert told(events["timed", "0"], "at", "due_before", "due") == [
        ("put", 0, None, 10),
        ("ready", 10.5, 10, None),
        ("taken", 11, None, 16),
        ("touched", 12, 16, 19),
        ("touched", 13, 19, 20),
        ("timed_out", 20.001, 20, None),
        ("taken", 21, None, 30),
        ("released", 22, 30, 40),
    ]
    assert events["timed", "0"][5]["since"] == 11


def test_the_end_of_a_life(events: dict[tuple[str, str], list[dict[str, Any]]]) -> None:
    assert told(events["timed", "1"]) == ["put", "taken", "touched", "released", "expired"]
    assert told(events["timed", "2"]) == ["put", "deleted"], "it had half a second to live"
    assert told(events["timed", "3"]) == ["put", "taken", "acked"]


def test_a_tube_that_was_dropped_and_made_again(
    events: dict[tuple[str, str], list[dict[str, Any]]],
) -> None:
    assert told(events["again", "0"], "life") == [("put", 1), ("taken", 1), ("acked", 1), ("put", 2)]
    assert told(events["again", "1"], "life", "at") == [("put", 1, 1), ("truncated", 1, 4), ("put", 2, 6)]


def test_sizes_of_data(events: dict[tuple[str, str], list[dict[str, Any]]]) -> None:
    assert events["fifo", "0"][0]["payload_bytes"] == len(b"\xa4data")
    assert events["timed", "0"][-1]["payload_bytes"] == len(b"\xa4data")


class TestTemporaryTubes:
    """Their tasks are in no file: they are left out, and named."""

    @staticmethod
    def _definitions(*temporary: bool) -> Definitions:
        return Definitions(
            SpaceDefinition(
                600 + number, f"tube{number}", 0, ({"name": "task_id"},), (), {}, False, is_temporary=each
            )
            for number, each in enumerate(temporary)
        )

    def _left(self, definitions: Definitions) -> list[str]:
        spaces = [QueueSpace.of(space, [ID]) for space in definitions.values()]
        return [space.name for space in _in_files(spaces, definitions)]

    def test_others_are_kept(self, caplog: pytest.LogCaptureFixture) -> None:
        assert self._left(self._definitions(False, True, False)) == ["tube0", "tube2"]
        assert caplog.messages == ["the queue tube1 is temporary: its tasks are in no file, and left out"]

    def test_only_temporary_ones_are_an_error(self) -> None:
        with pytest.raises(SourceError, match="space 'tube0' is temporary"):
            self._left(self._definitions(True, True))
