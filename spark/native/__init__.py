"""Compiled twins of the data source's hottest functions, in C, where there was a compiler at installation.

They work as those of `iproto_server.native` do, in a module of their own. An executor that imports the
packages from a zip file runs the Python functions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import iproto_server.native
from iproto_server.native.compiled_module import CompiledModule

__all__ = ["IS_COMPILED", "in_python", "module", "twin"]

_INTERFACE: Final = 1
"""The number in `module.c`; it changes when twins, or what they are given, do."""

_SHARED: Final = tuple(Path(iproto_server.native.__file__).parent / name for name in ("reader.c", "reader.h"))

module: Final = CompiledModule(__name__, Path(__file__).parent, _INTERFACE, _SHARED)

IS_COMPILED: Final = module.is_compiled
"""Whether compiled twins are in use."""

in_python: Final[dict[str, Any]] = module.in_python
"""What compiled twins have replaced, by name."""

twin = module.twin
