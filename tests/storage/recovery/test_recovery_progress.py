"""How far recovery is: drawn on a terminal, else logged now and then."""

from __future__ import annotations

import io
import logging

import pytest

from iproto_server.storage.recovery.recovery_progress import (
    LoggedProgress,
    ProgressBar,
    ProgressOfAll,
    progress_on,
)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_it_is_drawn_on_a_terminal_and_logged_elsewhere() -> None:
    assert isinstance(progress_on(Terminal()), ProgressBar)
    assert isinstance(progress_on(io.StringIO()), LoggedProgress)


def test_the_log_gets_a_line_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    times = [100.0]
    progress = LoggedProgress(lambda: times[-1], every=5)
    with caplog.at_level(logging.INFO):
        progress.begin(2000)
        for time, rows, position in (
            (101.0, 10, 1),
            (105.0, 1_200_000, 900),
            (106.0, 1_300_000, 1000),
            (110.0, 1_400_000, 2000),
        ):
            times.append(time)
            progress.update(rows, position)
        progress.end()
    assert caplog.messages == ["recovering: 1,200,000 rows, 45 %", "recovering: 1,400,000 rows, 100 %"]


def test_a_terminal_gets_a_line_that_is_redrawn() -> None:
    terminal = Terminal()
    progress = ProgressBar(terminal)
    progress.begin(1000)
    for rows in range(0, 1_000_001, 1000):
        progress.update(rows, rows // 1000)
    progress.end()
    drawn = terminal.getvalue()
    assert "500,000 rows" in drawn
    assert "1,000,000 rows" in drawn
    assert "100%" in drawn
    assert drawn.count("\r") < 50


def test_lines_of_the_log_take_the_place_of_the_bar() -> None:
    terminal = Terminal()
    handler = logging.StreamHandler(terminal)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        progress = ProgressBar(terminal)
        progress.begin(1000)
        root.warning("recovering from a file")
        progress.update(200_000, 500)
        progress.end()
        root.warning("recovered")
    finally:
        root.removeHandler(handler)
    before, _, after = terminal.getvalue().partition("recovering from a file\n")
    assert before.endswith("\r\x1b[K")
    assert "200,000 rows" in after
    # The bar is gone, the cursor is back, and what is logged now stands at the beginning of a line.
    assert after.endswith("\r\x1b[K\x1b[?25hrecovered\n")


def test_several_receivers_get_the_same(caplog: pytest.LogCaptureFixture) -> None:
    times = [100.0]
    progress = ProgressOfAll(*(LoggedProgress(lambda: times[-1], every=5) for _ in range(2)))
    terminal = Terminal()
    bar = ProgressOfAll(ProgressBar(terminal))
    with caplog.at_level(logging.INFO):
        progress.begin(2000)
        times.append(105.0)
        progress.update(10, 1000)
        progress.end()
    bar.begin(1000)
    bar.end()
    assert caplog.messages == ["recovering: 10 rows, 50 %"] * 2
    assert terminal.getvalue().endswith("\x1b[?25h")
