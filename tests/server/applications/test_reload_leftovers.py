"""What is left of the old code after a reload: background tasks until they end, and no memory."""

from __future__ import annotations

import logging
import sys
import weakref
from textwrap import dedent

import pytest

from iproto_server.server.applications import reload
from tests.server.applications.reloadable import Reloadable, code

__all__ = ["code"]


class TestBackgrounds:
    TEXT = """
    @app.background
    async def work(box):
        told = box.keep('told', list)
        told.append('{0} begins')
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            told.append('{0} ends')
    app.procedure('told')(lambda box: box.keep('told', list))
    """

    def test_the_old_end_before_the_new_begin(self, code: Reloadable) -> None:
        code.write(self.TEXT.format("one"))
        client = code.start()
        client.call("told")
        code.write(self.TEXT.format("two"))
        client.call("package.reload")
        client.call("told")
        assert client.call("told").data == [["one begins", "one ends", "two begins"]]

    def test_the_new_wait_for_one_that_does_not_end(
        self, code: Reloadable, caplog: pytest.LogCaptureFixture
    ) -> None:
        stubborn = """
        @app.background
        async def work(box):
            gate = box.keep('gate', asyncio.Event)
            while not gate.is_set():
                try:
                    await gate.wait()
                except asyncio.CancelledError:
                    pass
            box.keep('told', list).append('one ends')
        """
        code.write(stubborn)
        client = code.start()
        code.within(lambda: setattr(code.server.server.background_tasks, "_end_within", 0.01))
        code.write(
            dedent(self.TEXT.format("two"))
            + "app.procedure('open')(lambda box: box.keep('gate', asyncio.Event).set())"
        )
        assert client.call("package.reload").data == [2]
        assert (
            "a background task of jobs does not end; those of the new code start when it has" in caplog.text
        )
        assert client.call("told").data == [[]]
        client.call("open")
        for _ in range(5):  # turns of the loop
            client.call("told")
        assert client.call("told").data == [["one ends", "two begins"]]

    def test_only_the_newest_of_those_that_wait_begin(self, code: Reloadable) -> None:
        stubborn = """
        @app.background
        async def work(box):
            gate = box.keep('gate', asyncio.Event)
            while not gate.is_set():
                try:
                    await gate.wait()
                except asyncio.CancelledError:
                    pass
        """
        code.write(stubborn)
        client = code.start()
        code.within(lambda: setattr(code.server.server.background_tasks, "_end_within", 0.01))
        opener = "app.procedure('open')(lambda box: box.keep('gate', asyncio.Event).set())"
        for number in ("two", "three"):
            code.write(dedent(self.TEXT.format(number)) + opener)
            client.call("package.reload")
        client.call("open")
        for _ in range(5):
            client.call("told")
        assert client.call("told").data == [["three begins"]]

    def test_one_that_fails_at_its_end_is_logged(
        self, code: Reloadable, caplog: pytest.LogCaptureFixture
    ) -> None:
        failing = """
        @app.background
        async def work(box):
            try:
                await asyncio.Event().wait()
            finally:
                1 / 0
        """
        code.version(1, failing)
        client = code.start()
        code.version(2)
        assert client.call("package.reload").data == [2]
        assert "a background task of jobs failed" in caplog.text


class TestMemory:
    CLASS = """
    class Mark:
        pass
    @app.setup
    def setup(box):
        mark = Mark()
        box.session.on_connect(lambda: mark)
        box.watch('key', lambda key, value: mark)
        box.clock.call_later(0, lambda: mark)
    @app.background
    async def work(box):
        await asyncio.Event().wait()
    @app.procedure('mark')
    async def mark(box):
        await asyncio.sleep(0)
        return 'marked'
    app.metrics(lambda box: {'mark': id(Mark)})
    """

    def test_no_old_module_is_kept_alive(self, code: Reloadable) -> None:
        code.write(self.CLASS)
        client = code.start()
        marks = []
        for _ in range(3):
            marks.append(weakref.ref(sys.modules["reloaded_jobs"].Mark))
            assert client.call("mark").data == ["marked"]
            code.within(lambda: list(code.server.server.metrics()))
            client.call("package.reload")
        client.call("mark")
        assert [mark() for mark in marks] == [None, None, None]

    def test_with_many_objects_old_modules_are_freed_together(
        self, code: Reloadable, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reload, "MANY_BLOCKS", 0)
        code.write(self.CLASS)
        client = code.start()
        marks = []
        for number in range(1, reload.UNCOLLECTED_MAX + 1):
            marks.append(weakref.ref(sys.modules["reloaded_jobs"].Mark))
            client.call("package.reload")
            assert client.call("mark").data == ["marked"]
            left = sum(mark() is not None for mark in marks)
            assert left == (number if number < reload.UNCOLLECTED_MAX else 0)

    @pytest.mark.slow
    @pytest.mark.parametrize("last", ["", "1 / 0\n", "app.setup(lambda box: 1 / 0)\n"])
    def test_reloads_leave_as_many_objects_as_there_were(
        self, code: Reloadable, last: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.CRITICAL)
        code.write(self.CLASS)
        client = code.start()
        code.write(dedent(self.CLASS) + last)

        def reload(times: int) -> int:
            for _ in range(times):
                client.call("package.reload")
                client.call("mark")
            return code.collect()

        # A module that is kept has some 30 objects.
        after_five = reload(5)
        assert reload(20) - after_five < 100
