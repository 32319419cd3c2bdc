"""Our server with Lua and a real Tarantool, which evaluate the same texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgpack

from tests.differential.both import SUPER_GUEST
from tests.differential.lua.comparison import Outcome, outcome
from tests.differential.lua.snippet import Snippet
from tests.iproto_client import EVAL, EXPRESSION, TUPLE, Answer, IprotoClient
from tests.lua.snippets import DESCRIBED
from tests.real_tarantool import GUEST_IS_SUPER, RealTarantool
from tests.running_server import RunningServer

_HELPERS: Final = Path(__file__).with_name("helpers.lua")
_SECONDS: Final = 10.0
"""No snippet waits as long as that."""


class Gone(Exception):
    """A server has ended, or does not answer."""


class Servers:
    """Both servers.

    Parameters:
        directory: An empty directory for their files.
        tell: Called with the reason when they are started again.
    """

    def __init__(self, directory: Path, tell: Callable[[str], None] = lambda line: None) -> None:
        self._directory = directory
        self._tell = tell
        self._starts = 0
        self._start()

    def _start(self) -> None:
        self._starts += 1
        places = [self._directory / f"{name}-{self._starts}" for name in ("ours", "theirs")]
        for place in places:
            place.mkdir(parents=True)
        self._ours = RunningServer(
            places[0], [SUPER_GUEST], ["--lua", "--wal-mode", "none", "--checkpoint-interval", "0"]
        )
        self._theirs = RealTarantool(places[1], GUEST_IS_SUPER, {"log_level": "0"})
        self._clients: dict[str, IprotoClient] = {}
        self._connect()

    def _connect(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients = {
            "theirs": IprotoClient(self._theirs.host, self._theirs.port, timeout=_SECONDS),
            "ours": IprotoClient(self._ours.host, self._ours.port, timeout=_SECONDS),
        }
        for client in self._clients.values():
            answer = self._eval(client, _HELPERS.read_text(), DESCRIBED.read_text())
            assert answer.ok, answer.error

    def _eval(self, client: IprotoClient, text: str, *arguments: object) -> Answer:
        return client.request(EVAL, {EXPRESSION: text, TUPLE: list(arguments)})

    def evaluate(self, snippet: Snippet) -> tuple[Outcome, Outcome]:
        """Evaluate a snippet on both, in an empty database.

        Parameters:
            snippet: The snippet.

        Returns:
            What comes of it here and there.

        Raises:
            Gone: The real Tarantool has ended or does not answer; there are new servers now.
        """
        outcomes = []
        for name, client in self._clients.items():
            try:
                outcomes.append(self._outcome(client, snippet))
            except msgpack.BufferFull:
                outcomes.append(("answer", "more than 100 MB"))
            except TypeError:
                outcomes.append(("answer", "a map whose key is a table"))
            except (OSError, ConnectionError) as error:
                if name == "theirs":
                    self.restart(f"the real Tarantool is gone after\n{snippet}\n{error!r}")
                    raise Gone from error
                outcomes.append(("gone", repr(error)))
                self.restart(f"ours is gone after\n{snippet}\n{error!r}")
        return outcomes[1], outcomes[0]

    def _outcome(self, client: IprotoClient, snippet: Snippet) -> Outcome:
        cleaned = self._eval(client, "clean()")
        if not cleaned.ok:
            return ("not clean", cleaned.error)
        if snippet.is_described:
            return outcome(self._eval(client, "return judge(...)", snippet.text))
        return outcome(self._eval(client, snippet.text))

    def restart(self, reason: str) -> None:
        """Start two new servers.

        Parameters:
            reason: The reason, which is reported.
        """
        self._tell(f"starting both servers again: {reason}")
        self._end()
        self._start()

    def stop(self) -> None:
        """Stop both."""
        self._end()

    def _end(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients = {}
        self._ours.process.kill()
        self._theirs.process.kill()
