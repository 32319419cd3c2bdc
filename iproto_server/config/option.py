"""One option of the server, for the command line, the environment and files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

ENVIRONMENT_PREFIX = "IPROTO_SERVER_"

CENTURY = 100 * 365 * 86400.0
"""The longest time, in seconds, which Tarantool treats as infinite."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of all sources.

    Parameters:
        name: as in `box.cfg` and TOML, with underscores.
        parse: parses the value, or raises ValueError (see `option_parsers`).
        group: its heading in `--help`.
        metavar: placeholder of the value in `--help`; "" for a flag.
        help: one sentence for `--help`.
        many: whether it is a list.
        default: text of the default for `--help`; "": none.
    """

    name: str
    parse: Callable[[object], object]
    group: str
    metavar: str
    help: str
    many: bool = False
    default: str = ""

    @property
    def flag(self) -> str:
        """The option on the command line, `--work-dir`; applications are plain arguments, `MODULE:APP`."""
        return "MODULE:APP" if self.name == "apps" else "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable: `IPROTO_SERVER_WORK_DIR`."""
        return ENVIRONMENT_PREFIX + self.name.upper()
