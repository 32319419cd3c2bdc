"""A module in C that belongs to a package: how it is found, loaded and compared with its sources."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

from iproto_server.compiled_sources import fingerprint, sources_in

_MODULE: Final = "_native"

_SUFFIX: Final = EXTENSION_SUFFIXES[0]
"""The end of the name of a compiled module's file, which tells the Python and the platform."""

_INSTALL: Final = "install the package again (pip install)"


class NotCompiledError(ImportError):
    """A compiled module is missing, or belongs to other code; the text says what to install."""


class CompiledModule:
    """The compiled module `_native` of a package.

    Parameters:
        package: The package's full name.
        folder: The package's folder, with the C sources if they are there.
        interface: The number that the module's INTERFACE must equal.
        shared: Sources of the module that are in other folders.

    Attributes:
        name: The module's full name.
        loaded: The module itself.

    Raises:
        NotCompiledError: The module is missing, for another Python or platform, or for other Python code.
    """

    def __init__(self, package: str, folder: Path, interface: int, shared: Sequence[Path] = ()) -> None:
        self.name: Final = f"{package}.{_MODULE}"
        self._folder, self._shared = folder, shared
        self.loaded: Final = self._import()
        if interface != self.loaded.INTERFACE:
            raise NotCompiledError(
                f"{self.name} was compiled for another version of the Python code: {_INSTALL}", name=self.name
            )

    def _import(self) -> ModuleType:
        try:
            return import_module(self.name)
        except ImportError as error:
            module = self._import_beside_archive()
            if module is not None:
                return module
            files = sorted(file.name for file in self._folder.glob(f"{_MODULE}.*.so"))
            if files:
                reason = f"{self.name} cannot be imported: {', '.join(files)} is broken or for another Python"
            else:
                reason = f"{self.name} is missing"
            raise NotCompiledError(
                f"{reason}: install a wheel for {_here()}, or a C compiler and Python.h "
                "(Debian: gcc libc6-dev python3-dev) and then the package again",
                name=self.name,
            ) from error

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
    def shipped(self) -> tuple[Path, str]:
        """The file of the module, and its name beside a zip file of the package."""
        assert self.loaded.__file__ is not None
        return Path(self.loaded.__file__), self.name + _SUFFIX

    def staleness(self) -> str | None:
        """Tell whether the module was compiled from other C sources than those beside it.

        This reads the C sources, if they are there.

        Returns:
            The reason to compile it again; None if there is none.
        """
        sources = sources_in(self._folder)
        if not sources:
            return None
        try:
            is_current = fingerprint([*sources, *self._shared]) == self.loaded.FINGERPRINT
        except OSError as error:
            return f"{self.name} cannot be compared with its sources: {error}"
        return (
            None
            if is_current
            else f"{self.name} was compiled from other sources than those in {self._folder}"
        )

    def warn_if_stale(self, logger: logging.Logger) -> None:
        """Log a warning if the module was compiled from other C sources than those beside it.

        Parameters:
            logger: Where to log it.
        """
        reason = self.staleness()
        if reason is not None:
            logger.warning("%s: %s", reason, _INSTALL)


def _here() -> str:
    """The Python and the platform that this process runs on."""
    import sysconfig

    return f"Python {sys.version_info[0]}.{sys.version_info[1]} on {sysconfig.get_platform()}"
