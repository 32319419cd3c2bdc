"""Imports objects by "module:attribute", with clear errors, and imports applications again for a reload."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iproto_server.app import Application

ImportAnew = Callable[[], AbstractAsyncContextManager["Sequence[Application]"]]
"""Imports the applications again, as a context manager; an exception of its block undoes the imports."""

_Compiled = dict[str, tuple[bytes, CodeType]]
"""Sources with their compiled code, by path."""

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

    @asynccontextmanager
    async def load_anew(self) -> AsyncIterator[list[Application]]:
        """Import the applications again from their current files, as a context manager.

        Compiling takes most of the time: it comes first, and others run after each file. Then all modules are
        imported without a pause, so nobody finds old modules beside new ones. If the import or the block
        raises, the previous modules are restored.

        Raises:
            ApplicationImportError: as `load`.
        """
        import asyncio  # commands that only print something do without

        names, directories = self._places()
        compiled: _Compiled = {}
        for module in _modules_of(names, directories).values():
            _compile(module, compiled)
            await asyncio.sleep(0)
        before = _modules_of(names, directories)
        for name in before:
            del sys.modules[name]
        importlib.invalidate_caches()
        try:
            with _from_sources(compiled):
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


def _compile(module: ModuleType, compiled: _Compiled) -> None:
    """Read and compile the present source of a module, if it has one."""
    loader = getattr(module, "__loader__", None)
    if not isinstance(loader, SourceFileLoader):
        return
    try:
        source = loader.get_data(loader.path)
        compiled[loader.path] = source, loader.source_to_code(source, loader.path)
    except (OSError, SyntaxError, ValueError):
        pass  # the import raises it again, unless no module needs the file any more


class _CompiledLoader(SourceFileLoader):
    """Loads a module from code that is compiled already, unless its source has changed since.

    Parameters:
        found: the usual loader.
        compiled: the code of modules.
    """

    def __init__(self, found: SourceFileLoader, compiled: _Compiled) -> None:
        super().__init__(found.name, found.path)
        self._compiled = compiled

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        """Return the code of a source."""
        source, code = self._compiled.pop(path, (None, None))
        if code is not None and source == data:
            return code
        return super().source_to_code(data, path)


class _CompiledFinder:
    """Finds modules as usual, and has those loaded whose code is compiled already.

    Parameters:
        compiled: the code of modules.
    """

    def __init__(self, compiled: _Compiled) -> None:
        self._compiled = compiled

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module as the other finders do."""
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                if type(spec.loader) is SourceFileLoader and spec.loader.path in self._compiled:
                    spec.loader = _CompiledLoader(spec.loader, self._compiled)
                return spec
        return None


@contextmanager
def _from_sources(compiled: _Compiled) -> Iterator[None]:
    """Let imports read sources and ignore compiled files.

    Python matches compiled files to sources by size and time in whole seconds, so it would miss the second of
    two changes within a second.

    Parameters:
        compiled: the code of sources that are compiled already.
    """
    before = sys.pycache_prefix, sys.dont_write_bytecode
    sys.pycache_prefix, sys.dont_write_bytecode = os.devnull, True
    finder = _CompiledFinder(compiled)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
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
