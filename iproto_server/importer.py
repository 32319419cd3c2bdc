"""Imports objects by "module:attribute", with clear errors, and imports applications again for a reload."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iproto_server.app import Application

ImportAnew = Callable[[], AbstractContextManager["Sequence[Application]"]]
"""Imports the applications again, as a context manager; an exception of its block undoes the imports."""

_PACKAGE = __name__.partition(".")[0]
_INSTALLED = frozenset({"site-packages", "dist-packages"})


class ApplicationImportError(Exception):
    """An application cannot be imported; the message is one line and names the module or attribute."""


def import_object(target: str) -> object:
    """Import the object named by "module:attribute".

    Parameters:
        target: a module's dotted name, a colon, and an attribute, with dots for attributes of attributes.

    Returns:
        The attribute's value.

    Raises:
        ApplicationImportError: there is no such module or attribute, or importing the module raised.
    """
    module_name, _, path = target.partition(":")
    if not module_name or not path:
        raise ApplicationImportError(f'cannot import "{target}": expected MODULE:ATTRIBUTE')
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # The module itself, or a package it is in, is missing, not a module that it imports.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise _raised(target, module_name, error) from error
        raise ApplicationImportError(
            f'cannot import "{target}": there is no module "{error.name}"'
        ) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module may raise anything
        raise _raised(target, module_name, error) from error
    reached = module_name
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError as error:
            raise ApplicationImportError(
                f'cannot import "{target}": "{reached}" has no attribute "{name}"'
            ) from error
        reached = f"{reached}.{name}" if ":" in reached else f"{reached}:{name}"
    return found


class ApplicationModules:
    """The modules of applications: their own, and neighboring ones that they import.

    The neighbors of a module in a package are all modules of the outermost package. The neighbors of a module
    outside packages are the modules and packages in its directory, unless packages are installed there.

    Parameters:
        targets: "module:attribute" for every application.
    """

    def __init__(self, targets: Sequence[str]) -> None:
        self._targets = list(targets)

    def load(self) -> list[Application]:
        """Import the applications.

        Raises:
            ApplicationImportError: an application cannot be imported, or is of another type.
        """
        return [_application(target) for target in self._targets]

    @contextmanager
    def load_anew(self) -> Iterator[list[Application]]:
        """Import the applications again from their current files, as a context manager.

        If the import or the block raises, the previous modules are restored.

        Raises:
            ApplicationImportError: as `load`.
        """
        names, directories = self._places()
        before = _modules_of(names, directories)
        for name in before:
            del sys.modules[name]
        importlib.invalidate_caches()
        try:
            with _from_sources():
                applications = self.load()
            yield applications
        except BaseException:
            for name in _modules_of(names, directories):
                del sys.modules[name]
            sys.modules.update(before)
            raise

    def _places(self) -> tuple[set[str], set[Path]]:
        """Return the names of top-level packages and modules, and directories of modules outside packages."""
        names = {target.partition(":")[0].partition(".")[0] for target in self._targets}
        directories: set[Path] = set()
        for name in names:
            module = sys.modules.get(name)
            if module is not None and not hasattr(module, "__path__"):
                directory = _directory_around(module)
                if directory is not None and not _is_of_the_system(directory):
                    directories.add(directory)
        return names, directories


def _modules_of(names: set[str], directories: set[Path]) -> dict[str, ModuleType]:
    """Return the imported modules with given top-level names, or with files in given directories."""
    found: dict[str, ModuleType] = {}
    is_one: dict[str, bool] = {**dict.fromkeys(names, True), _PACKAGE: False, "__main__": False}
    for name, module in sys.modules.items():
        outermost = name.partition(".")[0]
        if outermost not in is_one:
            is_one[outermost] = bool(directories) and (
                _directory_around(sys.modules.get(outermost)) in directories
            )
        if is_one[outermost]:
            found[name] = module
    return found


def _directory_around(module: ModuleType | None) -> Path | None:
    """Return the directory of a top-level module or package; None if it has no file."""
    paths = list(getattr(module, "__path__", ()))
    path = paths[0] if paths else getattr(module, "__file__", None)
    return Path(path).resolve().parent if path else None


def _is_of_the_system(directory: Path) -> bool:
    """Whether a directory has installed packages or Python's own modules, which are not reloaded."""
    import sysconfig

    return bool(_INSTALLED.intersection(directory.parts)) or directory.is_relative_to(
        Path(sysconfig.get_path("stdlib")).resolve()
    )


@contextmanager
def _from_sources() -> Iterator[None]:
    """Let imports read sources and ignore compiled files.

    Python matches compiled files to sources by size and time in whole seconds, so it would miss the second of
    two changes within a second.
    """
    before = sys.pycache_prefix, sys.dont_write_bytecode
    sys.pycache_prefix, sys.dont_write_bytecode = os.devnull, True
    try:
        yield
    finally:
        sys.pycache_prefix, sys.dont_write_bytecode = before


def _application(target: str) -> Application:
    from iproto_server.app import Application

    found = import_object(target)
    if not isinstance(found, Application):
        raise ApplicationImportError(
            f'cannot import "{target}": it is of type {type(found).__name__},'
            " not an iproto_server.Application"
        )
    return found


def _raised(target: str, module_name: str, error: BaseException) -> ApplicationImportError:
    reason = " ".join(traceback.format_exception_only(error)[-1].split())
    place = ""
    frames = traceback.extract_tb(error.__traceback__)
    # A syntax error names its own place; its innermost frame is importlib's.
    if frames and not isinstance(error, SyntaxError):
        own = [frame for frame in frames if not frame.filename.startswith("<frozen importlib")] or frames
        place = f" ({own[-1].filename}, line {own[-1].lineno})"
    elif isinstance(error, SyntaxError):
        place = f" ({error.filename}, line {error.lineno})"
    return ApplicationImportError(
        f'cannot import "{target}": importing "{module_name}" raised {reason}{place}'
    )
