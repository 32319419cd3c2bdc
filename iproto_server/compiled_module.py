"""A module in C that belongs to a package: how it is found, loaded and compared with its sources."""

from __future__ import annotations

import logging
import sys
import sysconfig
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

from iproto_server.compiled_sources import fingerprint, sources_in

_MODULE: Final = "_native"

_SUFFIX: Final = EXTENSION_SUFFIXES[0]
"""The end of the name of a compiled module's file, which tells the Python and the platform."""

_Twin = TypeVar("_Twin", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)


class NotCompiledError(ImportError):
    """A compiled module is missing, or belongs to other code; the text says what to install."""


class CompiledModule:
    """The module `_native` of a package, if it was compiled.

    Parameters:
        package: The package's full name.
        folder: The package's folder, with the C sources if they are there.
        interface: The number that the module's INTERFACE must equal.
        shared: Sources of the module that are in other folders.

    Attributes:
        name: The module's full name.
        is_compiled: Whether the module is in use.
        in_python: What compiled twins have replaced, by name; methods by `Class.method`.
    """

    def __init__(self, package: str, folder: Path, interface: int, shared: Sequence[Path] = ()) -> None:
        self.name: Final = f"{package}.{_MODULE}"
        self._folder, self._shared = folder, shared
        self._found = self._import()
        is_usable = self._found is not None and interface == self._found.INTERFACE
        self._used: Final = self._found if is_usable else None
        self.is_compiled: Final = self._used is not None
        self.in_python: Final[dict[str, Any]] = {}

    def _import(self) -> ModuleType | None:
        try:
            return import_module(self.name)
        except ImportError:
            return self._import_beside_archive()  # not compiled, or for another Python: see `staleness`

    def _import_beside_archive(self) -> ModuleType | None:
        """Import the module from a file of its full name beside the zip file that has the package.

        Compiled modules cannot be imported from a zip file. One for another Python has another name.
        """
        archive = self._folder.parents[self.name.count(".") - 1]
        file = archive.with_name(self.name + _SUFFIX)
        if not archive.is_file() or not file.is_file():
            return None
        spec = spec_from_file_location(self.name, file)
        assert spec is not None
        assert spec.loader is not None
        try:
            module = sys.modules[self.name] = module_from_spec(spec)
            spec.loader.exec_module(module)
        except ImportError:
            sys.modules.pop(self.name, None)
            return None  # of another system
        return module

    @property
    def shipped(self) -> tuple[Path, str] | None:
        """The file of the module, and its name beside a zip file of the package; None if none is in use."""
        if self._used is None or self._used.__file__ is None:
            return None
        return Path(self._used.__file__), self.name + _SUFFIX

    def staleness(self) -> str | None:
        """Tell whether the module does not belong to the Python code and C sources beside it.

        This reads the C sources, if they are there.

        Returns:
            What is wrong with it; None if nothing is, or nothing was compiled.
        """
        name = self.name
        if self._found is None:
            files = sorted(file.name for file in self._folder.glob(f"{_MODULE}.*.so"))
            reason = f"{name} cannot be imported: {', '.join(files)} is broken or for another Python"
            return reason if files else None
        if self._used is None:
            return f"{name} is not used: it was compiled for another version of the Python code"
        sources = sources_in(self._folder)
        if not sources:
            return None
        try:
            is_current = fingerprint([*sources, *self._shared]) == self._found.FINGERPRINT
        except OSError as error:
            return f"{name} cannot be compared with its sources: {error}"
        return None if is_current else f"{name} was compiled from other sources than those in {self._folder}"

    def require(self) -> None:
        """Check that the module is in use.

        Raises:
            NotCompiledError: It is missing, for another Python or platform, or for other Python code.
        """
        if self.is_compiled:
            return
        here = f"Python {sys.version_info[0]}.{sys.version_info[1]} on {sysconfig.get_platform()}"
        reason = self.staleness() or f"{self.name} was not compiled for {here}"
        raise NotCompiledError(
            f"{reason}: install a wheel for {here}, or a C compiler and Python.h "
            "(Debian: gcc libc6-dev python3-dev) and then this package again",
            name=self.name,
        )

    def warn_if_stale(self, logger: logging.Logger) -> None:
        """Log a warning if the module does not belong to the files beside it.

        Parameters:
            logger: Where to log it.
        """
        reason = self.staleness()
        if reason is not None:
            logger.warning("%s: install the package again (pip install)", reason)

    def twin(self, python: _Twin) -> _Twin:
        """Decorate a function or class that may have a compiled twin, named so without leading underscores.

        Parameters:
            python: The function or class.

        Returns:
            The twin; `python` where nothing is compiled.

        Raises:
            LookupError: If the module has no such twin.
        """
        if self._used is None:
            return python
        name = python.__name__.lstrip("_")
        compiled: _Twin | None = self._used.take_over(name, python)
        if compiled is None:
            raise LookupError(f"{name} has no compiled twin")
        self.in_python[name] = python
        return compiled

    def compiled_class(self, name: str) -> Any:
        """The compiled twin of a class whose Python one is imported only where nothing is compiled.

        Parameters:
            name: The class's name.

        Raises:
            LookupError: If the module has no such class, or is not in use.
        """
        compiled = None if self._used is None else self._used.take_over(name, None)
        if compiled is None:
            raise LookupError(f"{name} is not compiled")
        return compiled

    def twin_methods(self, *names: str) -> Callable[[_Class], _Class]:
        """Decorate a class of which some methods have compiled twins.

        Compiled code reads the class's slots by their places. Objects of subclasses are left to Python.

        Parameters:
            names: The names of the methods.

        Returns:
            The decorator; it returns the class itself.
        """

        def decorate(owner: _Class) -> _Class:
            for name in names if self._used is not None else ():
                assert self._used is not None
                compiled = self._used.take_over_method(owner, name)
                python = self.in_python[f"{owner.__name__}.{name}"] = getattr(owner, name)
                for each in [each for each, value in vars(owner).items() if value is python]:
                    setattr(owner, each, compiled)
            return owner

        return decorate
