"""The compiled module `_native`: the engine's binding, and what the server does for every request.

Importing this package loads the module, from the package or from a file beside the zip file that has the
package. Without a module for this Python and platform, the import fails with `NotCompiledError`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from iproto_server.compiled_module import CompiledModule
from iproto_server.compiled_sources import sources_in

__all__ = ["module"]

_INTERFACE: Final = 36
"""The number in `module.c`; it changes when functions or types do, or what they are given."""

_FOLDER: Final = Path(__file__).parent

module: Final = CompiledModule(__name__, _FOLDER, _INTERFACE, sources_in(_FOLDER.parent / "engine" / "core"))
