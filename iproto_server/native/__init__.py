"""The compiled module `_native`: the engine's binding, and what the server does for every request.

Importing this package loads the module, from the package or from a file beside the zip file that has the
package. Without a module for this Python and platform, the import fails with `NotCompiledError`.

`twin` and `twin_methods` put compiled versions of whole functions and methods in the place of Python ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from iproto_server.compiled_module import CompiledModule
from iproto_server.compiled_sources import sources_in

__all__ = ["in_python", "module", "twin", "twin_methods"]

_INTERFACE: Final = 31
"""The number in `module.c`; it changes when twins, or what they are given, do."""

_FOLDER: Final = Path(__file__).parent

module: Final = CompiledModule(__name__, _FOLDER, _INTERFACE, sources_in(_FOLDER.parent / "engine" / "core"))

in_python: Final[dict[str, Any]] = module.in_python
"""The Python functions that compiled ones have replaced, by name; methods by `Class.method`."""

twin = module.twin
twin_methods = module.twin_methods
