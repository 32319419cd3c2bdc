"""Options of commands with a few possible values."""

from __future__ import annotations

from collections.abc import Sequence

import click

from iproto_server.config.option_parsers import in_words


class Choice(click.Choice[str]):
    """A choice whose error names what is chosen, as those of the server's options do.

    Parameters:
        what: what is chosen.
        choices: the values.
    """

    def __init__(self, what: str, choices: Sequence[str]) -> None:
        super().__init__(choices)
        self._what = what

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the value. Raises click.BadParameter if it is no choice."""
        if value not in self.choices:
            self.fail(f'unknown {self._what} "{value}": choose {in_words(list(self.choices))}', param, ctx)
        return value
