"""Named clients of a server of tubes: ours, or Tarantool with the queue module."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import Any

from tests.differential.login import PASSWORD, authenticate
from tests.iproto_client import CALL, EVAL, EXPRESSION, FUNCTION_NAME, TUPLE, Answer, IprotoClient
from tests.real_tarantool import RealTarantool
from tests.running_server import RunningServer

Outcome = Any
"""The list of a call's values, or the code and the text of its error."""

_numbers = itertools.count(1)


@dataclass
class World:
    """A server and its named clients.

    The names of tubes are unique, so that one server can serve many tests.

    Parameters:
        server: the server.
    """

    server: RunningServer | RealTarantool
    clients: dict[str, IprotoClient] = field(default_factory=dict)

    @property
    def is_real(self) -> bool:
        """Whether it is Tarantool with the module."""
        return isinstance(self.server, RealTarantool)

    def error(self, code: int, ours: str, theirs: str) -> Outcome:
        """Return an error whose text is ours or, from the module, that of Lua."""
        return code, theirs if self.is_real else ours

    def create(self, kind: str, options: dict[str, Any] | None = None, *, name: str | None = None) -> str:
        """Create a tube.

        Returns:
            Its name.
        """
        name = name or f"tube{next(_numbers)}"
        outcome = self.try_to_create(name, kind, options)
        assert isinstance(outcome, list), outcome
        return name

    def try_to_create(self, name: str, kind: str, options: dict[str, Any] | None = None) -> Outcome:
        """Try to create a tube; return `[True]`, or the error."""
        given = [name, kind] if options is None else [name, kind, options]
        if not self.is_real:
            outcome = self.call("operator", "queue.create_tube", *given)
            return [True] if isinstance(outcome, list) else outcome
        # The module returns an object with functions, which cannot be sent.
        lua = "queue.create_tube(...) return true"
        return _outcome(self.client("operator").request(EVAL, {EXPRESSION: lua, TUPLE: given}))

    def client(self, who: str) -> IprotoClient:
        """Return a client's connection, opening it on first use; the client "operator" is admin."""
        if who not in self.clients:
            self.clients[who] = IprotoClient(self.server.host, self.server.port)
            if who == "operator":
                assert self.clients[who].call("box.session.su", "admin").ok
        return self.clients[who]

    def call(self, who: str, procedure: str, *arguments: Any) -> Outcome:
        """Call a procedure as a client, and wait for the answer."""
        return _outcome(self.client(who).call(procedure, *arguments))

    def start(self, who: str, procedure: str, *arguments: Any) -> None:
        """Call a procedure as a client, without waiting."""
        self.client(who).send(CALL, {FUNCTION_NAME: procedure, TUPLE: list(arguments)})

    def finish(self, who: str) -> Outcome:
        """Return the answer to a call that was started."""
        return _outcome(self.client(who).receive())

    def leave(self, who: str) -> None:
        """Close a client's connection."""
        self.clients.pop(who).close()

    def log_in(self, who: str, user: str) -> None:
        """Log a client in as a new user."""
        self.call("operator", "box.schema.user.create", user, {"password": PASSWORD})
        assert authenticate(self.client(who), user).ok

    def close(self) -> None:
        """Close all connections."""
        while self.clients:
            self.leave(next(iter(self.clients)))


def _outcome(answer: Answer) -> Outcome:
    if answer.ok:
        return list(answer.data)
    # Lua's errors begin with a position in the source.
    return answer.error_code, re.sub(r"^\S+\.lua:\d+: ", "", answer.error or "")
