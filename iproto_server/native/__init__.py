"""Compiled twins of the hottest functions and classes, in C, where there was a compiler at installation.

The Python function is the specification, and the only one where nothing was compiled. `twin` puts the
compiled one in its place; that does what is common, and calls the Python one for everything else, errors
first of all. So the two cannot differ in what they refuse, and where they might differ in what they accept,
tests compare them (`tests/native`).

`twin_methods` does the same for methods of a class that is Python's.

The environment variable `IPROTO_SERVER_PURE_PYTHON`, set and not empty, leaves everything to Python.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, TypeVar

PURE_PYTHON: Final = "IPROTO_SERVER_PURE_PYTHON"
"""The environment variable."""

_INTERFACE: Final = 11
"""The number in `module.c`; it changes when twins, or what they are given, do."""

_Twin = TypeVar("_Twin", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)


def _load() -> ModuleType | None:
    if os.environ.get(PURE_PYTHON):
        return None
    try:
        from iproto_server.native import _native
    except ImportError:
        # Not compiled, or for another Python.
        return None
    # Where files are used in place, it may be compiled from an older or newer source.
    return _native if _native.INTERFACE == _INTERFACE else None


_compiled: Final = _load()
IS_COMPILED: Final = _compiled is not None
"""Whether compiled twins are in use."""

in_python: Final[dict[str, Any]] = {}
"""What compiled twins have taken the places of, by name; methods by `Class.method`."""


def twin(python: _Twin) -> _Twin:
    """Decorate a function or class that may have a compiled twin: of its name, without underscores in front.

    Returns:
        The twin; what was given where there is none.
    """
    if _compiled is None:
        return python
    name = python.__name__.lstrip("_")
    compiled: _Twin | None = _compiled.take_over(name, python)
    if compiled is None:
        raise LookupError(f"{name} has no compiled twin")
    in_python[name] = python
    return compiled


def twin_methods(*names: str) -> Callable[[_Class], _Class]:
    """Decorate a class of which some methods have compiled twins.

    Compiled code reads the class's slots by their places. Objects of classes that inherit from it are for
    Python.

    Parameters:
        names: the names of the methods.
    """

    def decorate(owner: _Class) -> _Class:
        for name in names if _compiled is not None else ():
            assert _compiled is not None
            compiled = _compiled.take_over_method(owner, name)
            python = in_python[f"{owner.__name__}.{name}"] = getattr(owner, name)
            for each in [each for each, value in vars(owner).items() if value is python]:
                setattr(owner, each, compiled)
        return owner

    return decorate
