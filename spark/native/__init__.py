"""The compiled module `_native` of the data source: the hottest loops over rows, values and columns.

Importing this package loads the module, from the package or from a file beside the zip file that has the
package. Without a module for this Python and platform, the import fails with `NotCompiledError`.

`twin` puts compiled versions of whole functions in the place of the Python ones, which describe them and are
what tests compare them with.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import iproto_server.native
from iproto_server.compiled_module import CompiledModule
from iproto_server.compiled_sources import sources_in

__all__ = ["in_python", "module", "twin"]

_Twin = TypeVar("_Twin", bound=Callable[..., Any])

_INTERFACE: Final = 2
"""The number in `module.c`; it changes with the twins and their parameters."""

_SERVER: Final = Path(iproto_server.native.__file__).parent
_CORE: Final = _SERVER.parent / "engine" / "core"
_SHARED: Final = (
    _SERVER / "values" / "reader.h",
    *(file for room in ("values", "update") for file in sources_in(_CORE / room)),
)

module: Final = CompiledModule(__name__, Path(__file__).parent, _INTERFACE, _SHARED)

in_python: Final[dict[str, Any]] = {}
"""The Python functions and classes that compiled ones have replaced, by name."""


def twin(python: _Twin) -> _Twin:
    """Replace a function or class by the compiled one, whose name has no leading underscores.

    Parameters:
        python: The function or class.

    Returns:
        The compiled one.

    Raises:
        LookupError: The module has none.
    """
    name = python.__name__.lstrip("_")
    compiled: _Twin | None = module.loaded.take_over(name, python)
    if compiled is None:
        raise LookupError(f"{name} has no compiled twin")
    in_python[name] = python
    return compiled
