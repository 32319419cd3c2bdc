"""The terminal of the module `console`: lines from a line editor, or from another standard input."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from iproto_server.terminal.line_editor import LineEditor
    from iproto_server.terminal.line_history import LineHistory

_BLOCK: Final = 65_536
_EDITOR: Final = "iproto_server.terminal.line_editor"

Done = Callable[..., None]
"""A function of Lua that takes True and results."""


class Terminal:
    """What `internal/console/terminal.lua` calls.

    Parameters:
        loop: the event loop.
        call: calls a function of Lua.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, call: Callable[..., Any]) -> None:
        self._loop = loop
        self._call = call
        self._history: LineHistory | None = None
        self._editor: LineEditor | None = None
        self._complete: Callable[..., None] | None = None
        self._input = _Input(loop)
        self._task: asyncio.Task[None] | None = None

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """The functions, by name."""
        return {
            "terminal_load": self._load,
            "terminal_open": self._open,
            "terminal_close": self._close,
            "terminal_read": self._read,
            "terminal_remember": self._remember,
        }

    def _load(self, done: Done) -> None:
        """Load what `_open` needs, which takes a third of a second, in a thread: others run meanwhile."""

        def load() -> None:
            with suppress(ImportError):  # which `_open` raises
                import_module(_EDITOR)
            with suppress(RuntimeError):  # the loop has ended meanwhile
                self._loop.call_soon_threadsafe(self._call, done, True)

        if _is_terminal():
            threading.Thread(target=load, name="console", daemon=True).start()
        else:
            self._loop.call_soon(self._call, done, True)

    def _open(self, history_file: bytes | None, complete: Callable[..., None]) -> bool:
        """Start.

        Parameters:
            history_file: where lines are kept.
            complete: what Tab asks: it gets a function for the results, the word, its begin and its end.

        Returns:
            Whether lines are edited on a terminal, which shows them.
        """
        if not _is_terminal():
            return False
        from iproto_server.terminal.line_editor import LineEditor
        from iproto_server.terminal.line_history import LineHistory

        self._complete = complete
        self._history = LineHistory(Path(os.fsdecode(history_file)) if history_file else None)
        self._editor = LineEditor(self._history, self._completions)
        return True

    def _close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._editor is not None:
            self._editor.close()
        self._editor = self._history = self._complete = None

    def _remember(self, line: bytes) -> None:
        if self._history is not None:
            self._history.remember(line.decode("utf-8", "surrogateescape"))

    def _read(self, done: Done, prompt: bytes) -> None:
        """Read a line. `done` gets None at the end of the input."""
        if self._editor is None:
            self._input.read(lambda line: self._call(done, True, line))
        else:
            self._task = self._loop.create_task(
                self._edit(self._editor, prompt.decode("utf-8", "replace"), done)
            )

    async def _edit(self, editor: LineEditor, prompt: str, done: Done) -> None:
        while True:
            try:
                line: bytes | None = (await editor.read(prompt)).encode("utf-8", "surrogateescape")
            except EOFError:
                line = None
            except KeyboardInterrupt:
                signal.raise_signal(signal.SIGINT)
                continue  # the process ends soon, or ignores the signal
            self._task = None
            self._call(done, True, line)
            return

    async def _completions(self, word: str, begin: int, end: int) -> list[str]:
        if self._complete is None:
            return []
        answer: asyncio.Future[list[str]] = self._loop.create_future()

        def found(*words: bytes) -> None:
            if not answer.done():
                answer.set_result([each.decode("utf-8", "surrogateescape") for each in words])

        self._call(self._complete, found, word.encode("utf-8", "surrogateescape"), begin, end)
        return await answer


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


class _Input:
    """Lines of a standard input that is no terminal.

    It is read in a thread, because an event loop cannot wait for files, and without Python's own buffer,
    whose lock would be held at the end of the process.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._data = b""
        self._has_ended = False
        self._take: Callable[[bytes | None], None] | None = None

    def read(self, take: Callable[[bytes | None], None]) -> None:
        """Have a line given to a function, None at the end."""
        self._take = take
        if b"\n" in self._data or self._has_ended:
            self._loop.call_soon(self._give)
        else:
            threading.Thread(target=self._fetch, name="console input", daemon=True).start()

    def _fetch(self) -> None:
        try:
            data = os.read(0, _BLOCK)
        except OSError:  # closed
            data = b""
        with suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(self._receive, data)

    def _receive(self, data: bytes) -> None:
        self._data += data
        self._has_ended = not data
        take = self._take
        if take is not None and not self._has_ended and b"\n" not in data:
            self.read(take)
        else:
            self._give()

    def _give(self) -> None:
        take, self._take = self._take, None
        if take is None:
            return
        if not self._data:
            take(None)
            return
        line, _, self._data = self._data.partition(b"\n")
        take(line)
