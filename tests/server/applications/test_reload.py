"""Reloading: what is new, what lives on, and what is replaced."""

from __future__ import annotations

import asyncio
import os
import signal
from textwrap import dedent

import pytest

from iproto_server.server.applications import reload
from tests.conftest import StartServer
from tests.iproto_client import (
    BEGIN,
    CALL,
    COMMIT,
    EVENT_DATA,
    EVENT_KEY,
    FUNCTION_NAME,
    STREAM_ID,
    TUPLE,
    WATCH,
    IprotoClient,
)
from tests.programs import REPOSITORY
from tests.server.applications.reloadable import SPACE, Reloadable, code, send_call

__all__ = ["code"]

TRIGGERS = (
    SPACE
    + """
@app.setup
def set_triggers(box):
    def note(what):
        box.keep('told', list).append([what, GENERATION])
    box.space.things.on_replace(lambda old, new: note('on_replace'))
    box.space.things.before_replace(lambda old, new: note('before_replace'))
    box.session.on_connect(lambda: note('connect'))
    box.session.on_disconnect(lambda: note('disconnect'))
    box.session.on_auth(lambda user, success: note('auth'))
    box.watch('key', lambda key, value: note(value))
@app.procedure('told')
def told(box):
    told = list(box.keep('told', list))
    box.keep('told', list).clear()
    return told
"""
)


class TestNewCode:
    def test_a_call_serves_the_new_code_and_answers_its_number(self, code: Reloadable) -> None:
        code.version("one")
        client = code.start()
        assert client.call("version").data == ["one"]
        code.version("two")
        assert client.call("version").data == ["one"]
        assert client.call("package.reload").data == [2]
        assert client.call("version").data == ["two"]

    def test_the_count_is_1_after_the_start(self, code: Reloadable) -> None:
        code.version("one")
        client = code.start()
        assert client.call("package.reload.count").data == [1]
        client.call("package.reload")
        assert client.call("package.reload.count").data == [2]

    def test_sighup_reloads_and_the_log_tells_so(self, start_server: StartServer, code: Reloadable) -> None:
        code.version("one")
        server = start_server(["reloaded_jobs:app"], environment={"PYTHONPATH": _python_path(code)})
        server.process.wait_for("ready to accept requests")
        with IprotoClient.at(server.address) as client:
            assert client.call("version").data == ["one"]
            code.version("two")
            server.process.signal(signal.SIGHUP)
            server.process.wait_for(r"reloaded in \d+\.\d ms, this is generation 2")
            assert client.call("version").data == ["two"]

    def test_a_bad_version_on_sighup_is_told_in_the_log(
        self, start_server: StartServer, code: Reloadable
    ) -> None:
        code.version("one")
        server = start_server(["reloaded_jobs:app"], environment={"PYTHONPATH": _python_path(code)})
        server.process.wait_for("ready to accept requests")
        with IprotoClient.at(server.address) as client:
            code.write("import no_such_module")
            server.process.signal(signal.SIGHUP)
            server.process.wait_for('the reload failed, generation 1 stays in force: cannot import "reloaded')
            assert client.call("version").data == ["one"]

    def test_sighup_while_it_starts_neither_ends_nor_reloads_it(
        self, start_server: StartServer, code: Reloadable
    ) -> None:
        code.write("import os, signal\napp.setup(lambda box: os.kill(os.getpid(), signal.SIGHUP))\n")
        server = start_server(["reloaded_jobs:app"], environment={"PYTHONPATH": _python_path(code)})
        with IprotoClient.at(server.address) as client:
            assert client.call("package.reload.count").data == [1]

    def test_many_signals_make_one_reload(self, code: Reloadable, monkeypatch: pytest.MonkeyPatch) -> None:
        """And one more if they come after it has begun, because the files may have changed since."""
        monkeypatch.setattr(reload, "SIGNAL_PAUSE", 0.1)
        code.version("one")
        client = code.start()
        server = code.server.server

        async def signals(generation: int) -> None:
            for _ in range(20):
                server.reload_soon()
            for _ in range(2000):
                if server.box.generation >= generation:
                    break
                await asyncio.sleep(0.01)

        for generation in (2, 3):
            code.server.run(signals(generation))
        assert client.call("package.reload").data == [4]

    def test_calls_that_wait_for_their_turn_share_a_reload(self, code: Reloadable) -> None:
        code.version("one")
        client = code.start()
        sent = [send_call(client, "package.reload") for _ in range(20)]
        answers = sorted(client.receive().data[0] for _ in sent)
        assert answers[-1] <= 4
        assert client.call("package.reload.count").data == [answers[-1]]

    def test_modules_beside_a_module_are_new_too(self, code: Reloadable) -> None:
        code.write("NUMBER = 1\n", "reloaded_numbers", head="")
        code.write("from reloaded_numbers import NUMBER\napp.procedure('number')(lambda box: NUMBER)\n")
        client = code.start()
        assert client.call("number").data == [1]
        code.write("NUMBER = 2\n", "reloaded_numbers", head="")
        client.call("package.reload")
        assert client.call("number").data == [2]

    def test_a_package_is_new_as_a_whole(self, code: Reloadable) -> None:
        for module, text in {
            "reloaded_package.__init__": "",
            "reloaded_package.numbers": "NUMBER = 1\n",
            "reloaded_package.deeper.__init__": "from reloaded_package.numbers import NUMBER\n",
        }.items():
            code.write(text, module, head="")
        code.write(
            "from reloaded_package.deeper import NUMBER\napp.procedure('number')(lambda box: NUMBER)\n",
            "reloaded_package.jobs",
        )
        client = code.start("reloaded_package.jobs:app")
        code.write("NUMBER = 2\n", "reloaded_package.numbers", head="")
        client.call("package.reload")
        assert client.call("number").data == [2]

    def test_a_version_of_the_same_size_and_second_is_new(self, code: Reloadable) -> None:
        code.version(1)
        client = code.start()
        for number in range(2, 6):
            code.version(number)
            client.call("package.reload")
            assert client.call("version").data == [number]

    def test_other_modules_stay(self, code: Reloadable) -> None:
        text = """
        import decimal, iproto_server.box
        app.procedure('ids')(lambda box: [id(decimal), id(iproto_server.box), id(Application)])
        """
        code.write(text)
        client = code.start()
        before = client.call("ids").data
        client.call("package.reload")
        assert client.call("ids").data == before

    def test_procedures_come_and_go(self, code: Reloadable) -> None:
        code.version(1, "app.procedure('old')(lambda box: None)")
        client = code.start()
        finder = "app.procedures_under('of.')(lambda name: lambda box: name)"
        code.version(2, f"app.procedure('new')(lambda box: 1)\n{finder}")
        client.call("package.reload")
        assert client.call("old").failure == (33, "Procedure 'old' is not defined")
        assert (client.call("new").data, client.call("of.me").data) == ([1], ["of.me"])

    def test_counters_are_asked_of_the_new_code(self, code: Reloadable) -> None:
        code.version(1, "app.metrics(lambda box: {'jobs.old': 1})")
        client = code.start()
        code.version(2, "app.metrics(lambda box: {'jobs.new': 2})")
        client.call("package.reload")
        counters = code.within(lambda: dict(code.server.server.metrics()))
        assert counters["jobs.new"] == 2
        assert "jobs.old" not in counters

    def test_the_old_code_is_told_when_the_new_has_taken_over(self, code: Reloadable) -> None:
        told = """
        told = []
        @app.setup
        def setup(box):
            told = box.keep('told', list)
            told.append('setup {0}')
            app.on_reload(lambda box: told.append('reload {0}'))
            app.on_stop(lambda box: told.append('stop {0}'))
        app.procedure('told')(lambda box: box.keep('told', list))
        """
        code.write(told.format(1))
        client = code.start()
        code.write(told.format(2))
        client.call("package.reload")
        assert client.call("told").data == [["setup 1", "setup 2", "reload 1"]]
        kept: list[str] = code.server.server.box.keep("told", list)
        code.stop()
        assert kept[3:] == ["stop 2"]

    def test_what_on_reload_raises_changes_nothing(
        self, code: Reloadable, caplog: pytest.LogCaptureFixture
    ) -> None:
        code.version(1, "app.on_reload(lambda box: 1 / 0)")
        client = code.start()
        code.version(2)
        assert client.call("package.reload").data == [2]
        assert client.call("version").data == [2]
        assert "an on_reload function of jobs failed" in caplog.text

    def test_a_setup_may_change_rows_of_a_read_only_server(self, code: Reloadable) -> None:
        code.version(1, SPACE)
        client = code.start(read_only=True)
        code.version(2, SPACE + "    space.replace([box.generation])\n")
        assert client.call("package.reload").data == [2]
        assert client.call("box.space.things:select").data == [[[2]]]
        assert client.call("box.space.things:replace", [3]).error_code == 7

    def test_applications_of_several_modules_are_reloaded_together(self, code: Reloadable) -> None:
        code.version(1)
        other = "app.procedure('other')(lambda box: {0})"
        code.write(other.format(1), "reloaded_others.jobs")
        client = code.start("reloaded_jobs:app", "reloaded_others.jobs:app")
        code.version(2)
        code.write(other.format(2), "reloaded_others.jobs")
        client.call("package.reload")
        assert (client.call("version").data, client.call("other").data) == ([2], [2])


class TestWhatLivesOn:
    def test_what_is_kept_is_the_same_object(self, code: Reloadable) -> None:
        adds = """
        @app.procedure('add')
        def add(box, number):
            kept = box.keep('numbers', list)
            kept.append(number)
            return kept
        """
        code.version(1, adds)
        client = code.start()
        client.call("add", 1)
        client.call("package.reload")
        assert client.call("add", 2).data == [[1, 2]]

    def test_sessions_keep_their_numbers_and_what_is_stored_with_them(self, code: Reloadable) -> None:
        text = """
        @app.procedure('store')
        def store(box, value=None):
            box.session.storage.value = value or box.session.storage.value
            return box.session.id(), box.session.storage.value
        """
        code.write(text)
        client = code.start()
        before = client.call("store", "mine").data
        code.connect().call("package.reload")
        assert client.call("store").data == before

    def test_who_waits_is_answered_by_the_new_code(self, code: Reloadable) -> None:
        text = """
        @app.setup
        def setup(box):
            global line
            line = box.keep('line', lambda: WaitQueue(box))
            line.resume_with(lambda name: [name, {0}])
        app.procedure('wait')(lambda box, name: line.park(60, arguments=(name,)))
        app.procedure('wait_for_old')(lambda box: line.park(60, lambda: 'old'))
        app.procedure('wake')(lambda box: line.wake(9))
        """
        code.write(text.format("'one'"))
        client = code.start()
        first, second = send_call(client, "wait", "ann"), send_call(client, "wait_for_old")
        other = code.connect()
        code.write(text.format("'two'"))
        other.call("package.reload")
        other.call("wake")
        answers = {answer.sync: answer.data for answer in (client.receive(), client.receive())}
        assert answers == {first: [["ann", "two"]], second: ["old"]}

    def test_a_running_async_procedure_ends_with_its_old_code(self, code: Reloadable) -> None:
        text = """
        @app.procedure('long')
        async def long(box):
            await box.keep('gate', asyncio.Event).wait()
            return {0}
        @app.procedure('open')
        def open(box):
            box.keep('gate', asyncio.Event).set()
        """
        code.write(text.format(1))
        client = code.start()
        send_call(client, "long")
        other = code.connect()
        code.write(text.format(2))
        other.call("package.reload")
        other.call("open")
        assert client.receive().data == [1]
        assert client.call("long").data == [2]

    def test_a_transaction_of_a_stream_goes_on(self, code: Reloadable) -> None:
        add = "app.procedure('add')(lambda box, n: box.space.things.insert([n, {0}]))\n"
        code.write(SPACE + add.format(1))
        client = code.start()
        stream = {STREAM_ID: 1}
        client.send(BEGIN, {}, stream)
        client.send(CALL, {FUNCTION_NAME: "add", TUPLE: [1]}, stream)
        assert [client.receive().ok, client.receive().ok] == [True, True]
        code.write(SPACE + add.format(2))
        assert client.call("package.reload").data == [2]
        client.send(CALL, {FUNCTION_NAME: "add", TUPLE: [2]}, stream)
        client.send(COMMIT, {}, stream)
        assert [client.receive().ok, client.receive().ok] == [True, True]
        assert client.call("box.space.things:select").data == [[[1, 1], [2, 2]]]

    def test_a_request_to_be_told_of_an_event_goes_on(self, code: Reloadable) -> None:
        code.version(1)
        client = code.start()
        client.send(WATCH, {EVENT_KEY: "k"})
        client.receive()
        code.version(2, "app.procedure('tell')(lambda box: box.broadcast('k', 2))")
        other = code.connect()
        other.call("package.reload")
        client.send(WATCH, {EVENT_KEY: "k"})
        other.call("tell")
        assert client.receive().body[EVENT_DATA] == 2


class TestTriggers:
    def test_are_replaced_and_not_doubled(self, code: Reloadable) -> None:
        code.write(TRIGGERS.replace("GENERATION", "1"))
        client = code.start()
        for generation in (2, 3):
            code.write(TRIGGERS.replace("GENERATION", str(generation)))
            client.call("package.reload")
            code.connect().close()
            client.call("told")
            client.call("box.space.things:replace", [1])
            client.call("box.broadcast", "key", "event")
            client.call("version")
            told = client.call("told").data[0]
            told = [each for each in told if each[0] != "disconnect"]
            assert sorted(told) == [
                ["before_replace", generation],
                ["event", generation],
                ["on_replace", generation],
            ]
            code.connect()
            told = client.call("told").data[0]
            assert ["connect", generation] in told
            assert ["connect", generation - 1] not in told
            assert code.within(lambda: len(code.server.server.box.session.disconnect_triggers.functions)) == 1

    def test_those_that_the_new_code_does_not_set_are_gone(self, code: Reloadable) -> None:
        code.write(SPACE + "    space.on_replace(lambda old, new: 1 / 0)\n")
        client = code.start()
        code.write(SPACE)
        client.call("package.reload")
        assert client.call("box.space.things:replace", [1]).ok

    def test_those_that_a_procedure_has_set_are_the_old_codes_too(self, code: Reloadable) -> None:
        setter = """
        @app.procedure('set')
        def set(box):
            box.space.things.on_replace(lambda old, new: 1 / 0)
        """
        code.write(SPACE + dedent(setter))
        client = code.start()
        client.call("set")
        assert client.call("box.space.things:replace", [1]).error_code == 32
        client.call("package.reload")
        assert client.call("box.space.things:replace", [1]).ok


def _python_path(code: Reloadable) -> str:
    return os.pathsep.join([str(code.directory / "code"), str(REPOSITORY)])
