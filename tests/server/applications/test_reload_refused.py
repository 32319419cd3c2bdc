"""Reloads that fail leave the old version in force; who may reload, and when."""

from __future__ import annotations

from textwrap import dedent

import pytest

from iproto_server import Application, BoxError
from tests.iproto_client import (
    BEGIN,
    CALL,
    FUNCTION_NAME,
    STREAM_ID,
    TUPLE,
)
from tests.server.applications.reloadable import SPACE, Reloadable, code, failure_of_reload, send_call
from tests.server.faults.faulty_disk import WAL_IO
from tests.server.in_process import ServerInProcess

__all__ = ["code"]

BAD_VERSIONS = {
    "a syntax error": ("foo bar\n", "raised SyntaxError"),
    "a missing module": ("import no_such_module\n", "raised ModuleNotFoundError: No module named"),
    "an exception": ("1 / 0\n", "raised ZeroDivisionError: division by zero"),
    "an exit": ("raise SystemExit(1)\n", "raised SystemExit: 1"),
    "an end of the process": ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
    "a cancellation": ("raise asyncio.CancelledError\n", "raised asyncio.exceptions.CancelledError"),
    "a setup that exits": (
        "app.setup(lambda box: exit(2))\n",
        "the setup of jobs failed: SystemExit: 2",
    ),
    "a setup that is cancelled": (
        "@app.setup\ndef _(box):\n    raise asyncio.CancelledError('x')\n",
        "the setup of jobs failed: CancelledError: x",
    ),
    "no application": ("del app\n", '"reloaded_jobs" has no attribute "app"'),
    "something else": ("app = 42\n", "it is of type int, not an iproto_server.Application"),
    "a setup that raises": (
        "app.setup(lambda box: 1 / 0)\n",
        "the setup of jobs failed: ZeroDivisionError: division by zero",
    ),
    "a setup that is refused": (
        "app.setup(lambda box: box.space.no_such_space)\n",
        "the setup of jobs failed: Space 'no_such_space' does not exist",
    ),
    "a setup that undoes": (
        "app.setup(lambda box: box.rollback())\n",
        "a setup has rolled back the transaction of all setups",
    ),
    "a conflict": (
        "app.procedure('other')(lambda box: None)\n",
        'the applications "jobs" and "others" both define "other"; serve them in two processes',
    ),
}
GOOD_VERSION = (
    SPACE
    + """
    box.keep('kept by one', list)
    space.on_replace(lambda old, new: box.keep('told', list).append(1))
    box.watch('key', lambda key, value: box.keep('told', list).append(['event', 1]))
    box.session.on_connect(lambda: box.keep('told', list).append('connect 1'))
@app.background
async def work(box):
    await asyncio.Event().wait()
"""
)


class TestABadVersion:
    @pytest.mark.parametrize("what", BAD_VERSIONS)
    def test_leaves_the_old_one_in_force(self, code: Reloadable, what: str) -> None:
        body, reason = BAD_VERSIONS[what]
        code.version(1, GOOD_VERSION)
        others = "app.procedure('other')(lambda box: 'other')\napp.name = 'others'\n"
        code.write(others, "reloaded_others.jobs")
        client = code.start("reloaded_jobs:app", "reloaded_others.jobs:app")
        code.version(2, GOOD_VERSION.replace("1", "2").replace("by one", "by two") + body)
        assert reason in failure_of_reload(client)
        assert (client.call("version").data, client.call("other").data) == ([1], ["other"])
        box = code.server.server.box
        code.within(box.keep("told", list).clear)
        client.call("box.space.things:replace", [1])
        assert client.call("box.broadcast", "key", 1).ok
        code.connect().call("version")
        told: list[object] = box.keep("told", list)
        assert sorted(map(str, told)) == ["1", "['event', 1]", "connect 1"]
        assert code.within(lambda: [task.done() for task in code.server.server.background_tasks.tasks]) == [
            False
        ]
        code.version(3)
        assert client.call("package.reload").data == [2]
        assert client.call("version").data == [3]

    def test_leaves_nothing_of_what_its_setup_did(self, code: Reloadable) -> None:
        code.version(1)
        client = code.start()
        setup = SPACE + "    space.insert([1])\n    box.keep('mine', lambda: 'bad')\n    1 / 0\n"
        code.version(2, setup)
        failure_of_reload(client)
        assert client.call("box.space.things:len").error_code == 33
        code.version(3, "app.procedure('mine')(lambda box: box.keep('mine', lambda: 'good'))")
        client.call("package.reload")
        assert client.call("mine").data == ["good"]

    def test_leaves_who_waits_with_the_old_code(self, code: Reloadable) -> None:
        text = """
        @app.setup
        def setup(box):
            global line
            line = box.keep('line', lambda: WaitQueue(box))
            line.resume_with(lambda: {0})
        app.procedure('wait')(lambda box: line.park(60))
        app.procedure('wake')(lambda box: line.wake())
        """
        code.write(text.format("'one'"))
        client = code.start()
        send_call(client, "wait")
        other = code.connect()
        code.write(dedent(text).format("'two'") + "app.setup(lambda box: 1 / 0)\n")
        failure_of_reload(other)
        other.call("wake")
        assert client.receive().data == ["one"]

    def test_leaves_the_old_modules_imported(self, code: Reloadable) -> None:
        code.write("NUMBER = 1\n", "reloaded_numbers", head="")
        code.write(
            "import reloaded_numbers\n"
            "@app.procedure('number')\ndef number(box):\n    import reloaded_numbers as again\n"
            "    return again.NUMBER, again is reloaded_numbers\n"
        )
        client = code.start()
        code.write("NUMBER = 2\n", "reloaded_numbers", head="")
        code.write("import reloaded_numbers\n1 / 0\n")
        failure_of_reload(client)
        assert client.call("number").data == [1, True]

    @pytest.mark.parametrize("wal_mode", ["write", "fsync"])
    def test_is_one_whose_setup_cannot_be_logged(self, code: Reloadable, wal_mode: str) -> None:
        code.version(1, SPACE + "    space.on_replace(lambda old, new: box.keep('told', list).append(1))\n")
        client = code.start(wal_mode=wal_mode)
        code.version(2, SPACE + "    space.insert([1])\n    space.on_replace(lambda old, new: 1 / 0)\n")
        code.server.disk.fault = code.server.disk.sync_fault = 28
        assert failure_of_reload(client) == WAL_IO[1]
        code.server.disk.fault = code.server.disk.sync_fault = None
        assert client.call("version").data == [1]
        assert client.call("box.space.things:replace", [2]).ok
        assert client.call("box.space.things:select").data == [[[2]]]
        kept: list[int] = code.server.server.box.keep("told", list)
        assert kept[-1] == 1


class TestWho:
    def test_asks_for_several_reloads_at_once_shares_them(self, code: Reloadable) -> None:
        """One reload if all calls come before it begins; else those that come later share the next one."""
        code.version(1)
        client = code.start()
        syncs = [send_call(client, "package.reload") for _ in range(3)]
        answers = [client.receive() for _ in syncs]
        assert [answer.sync for answer in answers] == syncs
        counts = [answer.data[0] for answer in answers]
        assert counts == sorted(counts)
        assert set(counts) <= {2, 3}

    def test_has_an_open_transaction_in_a_stream_cannot_reload_in_it(self, code: Reloadable) -> None:
        code.version(1)
        client = code.start()
        client.send(BEGIN, {}, {STREAM_ID: 1})
        client.receive()
        client.send(CALL, {FUNCTION_NAME: "package.reload", TUPLE: []}, {STREAM_ID: 1})
        assert client.receive().failure == (5, "An interactive transaction does not support calls that wait")
        client.send(CALL, {FUNCTION_NAME: "package.reload.count", TUPLE: []}, {STREAM_ID: 1})
        assert client.receive().data == [1]

    def test_may_not_execute_everything_is_refused(self, code: Reloadable) -> None:
        users = """
        @app.setup
        def users(box):
            box.schema.user.create('ann', if_not_exists=True)
            box.schema.func.create('package.reload', if_not_exists=True)
            box.schema.user.grant('guest', 'execute', 'function', 'package.reload', if_not_exists=True)
        app.procedure('become_ann')(lambda box: box.session.su('ann') and None)
        app.procedure('become_guest')(lambda box: box.session.su('guest') and None)
        """
        code.write(users)
        client = code.start()
        client.call("become_ann")
        assert client.call("package.reload").failure == (
            42,
            "Execute access to function 'package.reload' is denied for user 'ann'",
        )
        assert client.call("package.reload.count").failure == (
            42,
            "Execute access to function 'package.reload.count' is denied for user 'ann'",
        )
        assert code.connect().call("package.reload").data == [2]

    def test_serves_applications_without_modules_is_told_so(self, code: Reloadable) -> None:
        with ServerInProcess(code.directory / "data", [Application("python")]) as server:
            client = server.connect()
            assert failure_of_reload(client) == "the server has not imported its applications itself"

    def test_reloads_while_a_snapshot_is_written_disturbs_neither(self, code: Reloadable) -> None:
        code.version(1, SPACE)
        client = code.start()
        for number in range(100):
            client.call("box.space.things:replace", [number])
        code.version(2, SPACE + "    space.replace([1000])\n")
        syncs = [send_call(client, "box.snapshot"), send_call(client, "package.reload")]
        answers = {answer.sync: answer.data for answer in (client.receive(), client.receive())}
        assert answers == {syncs[0]: ["ok"], syncs[1]: [2]}
        assert client.call("box.space.things:len").data == [101]

    def test_reloads_a_server_that_stops_is_refused(self, code: Reloadable) -> None:
        code.version(1)
        code.start()
        code.server.server.state.is_stopping = True
        with pytest.raises(BoxError, match="the server is stopping"):
            code.server.run(code.server.server._reload.reload())
