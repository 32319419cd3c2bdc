"""The line that tells how many rows are done."""

from __future__ import annotations

import io

from iproto_server.tools.files.progress import INTERVAL, RowProgress


class Terminal(io.StringIO):
    """A terminal that remembers what was written."""

    def isatty(self) -> bool:
        return True


class Time:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_numbers_come_now_and_then_and_the_last_one_always() -> None:
    terminal, time = Terminal(), Time()
    progress = RowProgress(terminal, time)
    progress.show(1)
    progress.show(2)
    time.now += INTERVAL
    progress.show(3)
    progress.end(4)
    assert terminal.getvalue() == "\r1 rows\r3 rows\r4 rows\n"


def test_work_that_is_given_up_ends_the_line() -> None:
    terminal = Terminal()
    progress = RowProgress(terminal, Time())
    progress.show(1)
    progress.end()
    assert terminal.getvalue() == "\r1 rows\n"


def test_a_line_that_was_never_begun_is_not_ended() -> None:
    terminal = Terminal()
    RowProgress(terminal, Time()).end()
    assert terminal.getvalue() == ""


def test_nobody_watches_a_file() -> None:
    file = io.StringIO()
    progress = RowProgress(file, Time())
    progress.show(1)
    progress.end(2)
    assert file.getvalue() == ""
