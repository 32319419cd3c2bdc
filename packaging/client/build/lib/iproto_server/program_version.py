"""The version of this program, which the package's metadata are made from."""

from __future__ import annotations

from typing import Final

PROGRAM_VERSION: Final = "0.1.0"

__version__: Final = PROGRAM_VERSION
"""The same by the name that `iproto_server` has it by."""
