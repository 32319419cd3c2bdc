"""The compiled module `_native` of the data source: the hottest loops over rows, values and columns.

Importing this package loads the module, from the package or from a file beside the zip file that has the
package. Without a module for this Python and platform, the import fails with `NotCompiledError`.

`twin` puts compiled versions of whole functions in the place of the Python ones, which describe them and are
what tests compare them with.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import iproto_server.native
from iproto_server.compiled_module import CompiledModule
from iproto_server.compiled_sources import sources_in

__all__ = ["in_python", "module", "twin"]

_INTERFACE: Final = 2
"""The number in `module.c`; it changes with the twins and their parameters."""

_SERVER: Final = Path(iproto_server.native.__file__).parent
_CORE: Final = _SERVER.parent / "engine" / "core"
_SHARED: Final = (
    _SERVER / "values" / "reader.h",
    *(file for room in ("values", "update") for file in sources_in(_CORE / room)),
)

module: Final = CompiledModule(__name__, Path(__file__).parent, _INTERFACE, _SHARED)

in_python: Final[dict[str, Any]] = module.in_python
"""The Python functions and classes that compiled ones have replaced, by name."""

twin = module.twin
