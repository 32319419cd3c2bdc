"""Compiled twins, in C, of the data source's hottest functions; an installation in pure Python has none.

They work like those of `iproto_server.native`, in a separate module. An executor that imports the packages
from a zip file runs the Python functions, unless the module for its Python and system is beside that file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import iproto_server.native
from iproto_server.compiled_module import CompiledModule

__all__ = ["IS_COMPILED", "in_python", "module", "twin"]

_INTERFACE: Final = 2
"""The number in `module.c`; it changes with the twins and their parameters."""

_SERVER: Final = Path(iproto_server.native.__file__).parent
_CORE: Final = _SERVER.parent / "engine" / "core"
_SHARED: Final = (
    *(_SERVER / "values" / name for name in ("reader.c", "reader.h")),
    *(_CORE / name for name in ("msgpack.c", "msgpack.h", "update.c", "update.h")),
)

module: Final = CompiledModule(__name__, Path(__file__).parent, _INTERFACE, _SHARED)

IS_COMPILED: Final = module.is_compiled
"""Whether compiled twins are in use."""

in_python: Final[dict[str, Any]] = module.in_python
"""The Python functions and classes that compiled twins replace, by name."""

twin = module.twin
