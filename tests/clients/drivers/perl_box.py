"""Perl's MR::Tarantool::Box, which speaks Tarantool 1.5's protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.clients.drivers.bridge import HERE, Bridge
from tests.clients.drivers.driver import Target
from tests.programs import require_perl_module

MODULE = "MR::Tarantool::Box"
PACKAGE = "libmr-tarantool-perl"


class PerlBox(Bridge):
    """The client. Texts are bytes to it; here each character stands for the byte of its number.

    Its formats are those of Perl's `pack`: `&` is a byte string, `L` a number of four bytes, `Q` one of
    eight; a last one with a star stands for all fields from there on.

    Parameters:
        target: The server.
    """

    def __init__(self, target: Target) -> None:
        program = require_perl_module(MODULE, PACKAGE)
        super().__init__([program, HERE / "perl" / "bridge.pl"], target, None, None)

    def answer_to_ping(self) -> object:
        """Return the client's result of a PING: `answer of ` and the body."""
        [answer] = self.request("ping")
        return answer

    def use(self, space: int, format: str, *indexes: Sequence[int]) -> None:
        """Use a space from now on.

        Parameters:
            space: Its number.
            format: What its fields are.
            indexes: The numbers of the fields of each index.
        """
        assert self.request("use", space, format, *indexes)

    def store(self, action: str, row: Sequence[object], *, wanted: bool = False) -> Any:
        """INSERT: `set`, `add` or `replace`; the number of rows, or the row if it is wanted."""
        return self.request("store", action, row, wanted)

    def read(self, keys: Sequence[object], index: str = "index0", limit: int = 0, offset: int = 0) -> Any:
        """SELECT: the rows."""
        return self.request("select", index, keys, limit, offset)

    def change(self, key: object, *operations: Sequence[object], wanted: bool = False) -> Any:
        """UPDATE: the number of rows, or the row if it is wanted."""
        return self.request("update", key, operations, wanted)

    def remove(self, key: object, *, wanted: bool = False) -> Any:
        """DELETE: the number of rows, or the row if it is wanted."""
        return self.request("delete", key, wanted)

    def ask(self, procedure: str, *arguments: object, format: str = "&*") -> list[list[Any]]:
        """CALL: the tuples. All arguments are sent as texts."""
        rows: list[list[Any]] = self.request("call", procedure, list(map(str, arguments)), format)
        return rows
