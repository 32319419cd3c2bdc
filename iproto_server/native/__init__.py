"""Compiled twins of the hottest functions and classes, in C, unless pure Python was chosen at installation.

The Python function is the specification, and the only one where nothing was compiled. `twin` replaces it by
the compiled one, which handles the common case and calls the Python one for everything else, errors first of
all. So the two cannot differ in what they refuse; where they might differ in what they accept, tests compare
them (`tests/native`).

`twin_methods` does the same for methods of a Python class.

The environment variable `IPROTO_SERVER_PURE_PYTHON`, set and not empty, leaves everything to Python.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from iproto_server.native.compiled_module import PURE_PYTHON, CompiledModule
from iproto_server.native.sources import sources_in

__all__ = ["IS_COMPILED", "PURE_PYTHON", "in_python", "module", "twin", "twin_methods"]

_INTERFACE: Final = 28
"""The number in `module.c`; it changes when twins, or what they are given, do."""

_FOLDER: Final = Path(__file__).parent

module: Final = CompiledModule(__name__, _FOLDER, _INTERFACE, sources_in(_FOLDER.parent / "engine" / "core"))

IS_COMPILED: Final = module.is_compiled
"""Whether compiled twins are in use."""

in_python: Final[dict[str, Any]] = module.in_python
"""The Python functions that compiled twins have replaced, by name; methods by `Class.method`."""

twin = module.twin
twin_methods = module.twin_methods
