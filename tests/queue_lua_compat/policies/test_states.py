"""Paused and draining queues, and options that a queue does not know."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import BoxError, ManualClock, QueueState, TaskState
from tests.queue_lua_compat.policies.worlds import World

READY, TAKEN = TaskState.READY, TaskState.TAKEN


class TestPause:
    def test_takes_find_nothing(self, world: World, client: Any) -> None:
        world.put(client, "x")
        world.operator(world.queue().pause)
        assert world.queue().state == QueueState.PAUSED
        assert world.take(client) is None
        assert world.tasks() == {"x": READY}

    def test_tasks_can_be_put_and_acknowledged(self, world: World, client: Any) -> None:
        world.put(client, "x")
        task_id = world.take(client)
        world.operator(world.queue().pause)
        world.put(client, "y")
        world.ack(client, task_id)
        assert world.tasks() == {"y": READY}

    def test_waiting_takes_go_on_waiting(self, world: World, client: Any) -> None:
        waiting = world.take(world.connect(), 60)
        world.operator(world.queue().pause)
        world.put(client, "x")
        assert not waiting.is_done
        world.operator(world.queue().resume)
        assert waiting.is_done
        assert world.tasks() == {"x": TAKEN}

    def test_all_waiting_takes_are_served_by_a_resume(self, world: World, client: Any) -> None:
        world.operator(world.queue().pause)
        waiting = [world.take(world.connect(), 60) for _ in range(3)]
        for data in "abc":
            world.put(client, data)
        world.operator(world.queue().resume)
        assert [waiter.is_done for waiter in waiting] == [True] * 3

    def test_it_survives_a_restart(self, world: World, client: Any) -> None:
        world.put(client, "x")
        world.operator(world.queue().pause)
        world.server.restart()
        assert world.queue().state == QueueState.PAUSED
        assert world.take(world.connect()) is None
        world.operator(world.queue().resume)
        assert world.take(world.connect()) is not None

    def test_a_rollback_takes_it_back(self, world: World, client: Any) -> None:
        world.put(client, "x")

        with world.undone():
            world.operator(world.queue().pause)
            assert world.queue().state == QueueState.PAUSED
        assert world.queue().state == QueueState.RUNNING
        assert world.take(client) is not None


class TestDraining:
    def test_puts_are_refused(self, world: World, client: Any) -> None:
        world.put(client, "x")
        world.operator(world.queue().drain)
        with pytest.raises(BoxError, match=f'the queue "{world.name}" is draining'):
            world.put(client, "y")
        assert world.tasks() == {"x": READY}

    def test_consumers_go_on(self, world: World, client: Any) -> None:
        world.put(client, "x")
        world.operator(world.queue().drain)
        world.release(client, world.take(client))
        world.ack(client, world.take(client))
        assert world.tasks() == {}

    def test_a_resume_ends_it(self, world: World, client: Any) -> None:
        world.operator(world.queue().drain)
        world.operator(world.queue().resume)
        world.put(client, "x")
        assert world.tasks() == {"x": READY}

    def test_it_survives_a_restart(self, world: World) -> None:
        world.operator(world.queue().drain)
        world.server.restart()
        assert world.queue().state == QueueState.DRAINING
        with pytest.raises(BoxError, match="is draining"):
            world.put(world.connect(), "x")


class TestStrictOptions:
    def test_unknown_options_of_put_are_ignored(self, world: World, client: Any) -> None:
        if world.kind == "legacy":
            pytest.skip("its call with named options is always strict")
        world.put(client, "x", dealy=5)
        assert world.tasks() == {"x": READY}

    def test_each_is_logged_once(self, world: World, client: Any, caplog: pytest.LogCaptureFixture) -> None:
        if world.kind == "legacy":
            pytest.skip("its call with named options is always strict")
        for number in range(3):
            world.put(client, number, unique_kye="x")
        lines = [record.getMessage() for record in caplog.records if "unique_kye" in record.getMessage()]
        start = f'queue "{world.name}": put has no option "unique_kye", did you mean "unique_key"? it has '
        assert len(lines) == 1
        assert lines[0].startswith(start)
        assert lines[0].endswith("; it is ignored, as there is no strict_options")

    def test_the_log_has_a_limit(self, world: World, client: Any, caplog: pytest.LogCaptureFixture) -> None:
        if world.kind == "legacy":
            pytest.skip("its call with named options is always strict")
        for number in range(100):
            world.put(client, number, **{f"wrong {number}": 1, "y" * 10_000: 1})
        lines = [record.getMessage() for record in caplog.records if "has no option" in record.getMessage()]
        assert len(lines) == 20
        assert all(len(line) < 500 for line in lines)

    @pytest.mark.parametrize("is_strict", [False, True])
    def test_of_release(self, clock: ManualClock, is_strict: bool, caplog: pytest.LogCaptureFixture) -> None:
        for kind, name in (("tutorial", "release"), ("fifottl", "queue.tube.jobs:release")):
            world = World(kind, clock)
            world.configure(strict_options=is_strict)
            client = world.connect()
            world.put(client, "x")
            task_id = world.take(client)
            if is_strict:
                with pytest.raises(BoxError, match='release has no option "dealy", did you mean "delay"'):
                    client.call(name, task_id, {"dealy": 5})
                assert world.tasks() == {"x": TaskState.TAKEN}
            else:
                client.call(name, task_id, {"dealy": 5})
                assert world.tasks() == {"x": READY}
        assert ('release has no option "dealy"' in caplog.text) is not is_strict

    def test_they_are_refused_where_the_queue_is_strict(self, world: World, client: Any) -> None:
        world.configure(strict_options=True)
        with pytest.raises(BoxError, match=r'put.* has no option "dealy".* it has '):
            world.put(client, "x", dealy=5)
        world.put(client, "y", unique_key="k")
        assert world.tasks() == {"y": READY}


class TestConfigure:
    def test_settings_are_shown_as_given(self, world: World) -> None:
        world.configure(release_limit=3)
        before = dict(world.queue().settings)
        world.configure(release_limit_policy="DLQ")
        assert world.queue().settings == before | {"release_limit_policy": "DLQ"}
        world.configure(release_limit=None, release_limit_policy=None)
        del before["release_limit"]
        assert world.queue().settings == before

    def test_they_survive_a_restart(self, world: World) -> None:
        world.configure(release_limit=3)
        world.server.restart()
        assert world.queue().settings["release_limit"] == 3

    @pytest.mark.parametrize(
        ("options", "error"),
        [
            (
                {"relaese_limit": 3},
                'has no option "relaese_limit", did you mean "release_limit"\\? it has disconnect_retry',
            ),
            ({"release_limit": "three"}, "release_limit must be a whole number"),
            ({"strict_options": 1}, "strict_options must be true or false"),
            ({1: 2}, "has no option 1"),
            ({"unique_key": "k"}, 'has no option "unique_key"'),
        ],
    )
    def test_wrong_options_are_refused(self, world: World, options: dict[Any, object], error: str) -> None:
        before = world.queue().settings
        with pytest.raises(BoxError, match=error):
            world.operator(lambda: world.queue().configure(options))
        assert world.queue().settings == before
