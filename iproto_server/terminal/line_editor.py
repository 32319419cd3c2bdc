"""A line editor on a terminal, with history and completion, for an event loop."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.lexers import Lexer

from iproto_server.terminal.line_history import LineHistory

Complete = Callable[[str, int, int], Awaitable[Sequence[str]]]
"""Returns the words that a word may become; it gets the word, and its begin and end in the line."""

_WORD: Final = re.compile(r"[\w.:]*\Z")


class LineEditor:
    """A line editor on the terminal of standard input.

    Parameters:
        history: the lines that the arrow keys bring back.
        complete: what Tab asks.
        lexer: colours the line.
    """

    def __init__(self, history: LineHistory, complete: Complete, lexer: Lexer | None = None) -> None:
        # A file of its own: event loops set what they read from to non-blocking, and the standard output is
        # often the same file.
        terminal = os.open(os.ttyname(sys.stdin.fileno()), os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
        self._terminal = os.fdopen(terminal, encoding="utf-8", errors="surrogateescape")
        self._session: PromptSession[str] = PromptSession(
            history=history,
            completer=_Completer(complete),
            complete_while_typing=False,
            lexer=lexer,
            input=Vt100Input(self._terminal),
        )

    async def read(self, prompt: str) -> str:
        """Read a line.

        Parameters:
            prompt: what is in front of it.

        Returns:
            The line, without its end.

        Raises:
            EOFError: Ctrl-D in an empty line, or the terminal is gone.
            KeyboardInterrupt: Ctrl-C.
        """
        return await self._session.prompt_async(prompt, handle_sigint=False)

    def close(self) -> None:
        """Leave the terminal."""
        self._terminal.close()


class _Completer(Completer):
    def __init__(self, complete: Complete) -> None:
        self._complete = complete

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Any:
        raise NotImplementedError("completions are asked for asynchronously")

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        before = document.text_before_cursor
        found = _WORD.search(before)
        word = found[0] if found else ""
        for each in await self._complete(word, len(before) - len(word), len(before)):
            yield Completion(each, start_position=-len(word))
