"""Names the missing extra where a library of it cannot be imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from pyspark_tarantool.source.errors import SourceError

LIBRARIES: Final = frozenset(
    {"jinja2", "markupsafe", "matplotlib", "numpy", "orjson", "pandas", "py4j", "pyarrow", "pyspark"}
)
"""The top-level modules that the extra `spark` brings."""

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class MissingExtraError(SourceError):
    """A library of the extra `spark` is not installed."""


@contextmanager
def explain_missing() -> Iterator[None]:
    """Replace the error of a failed import by one that says what to install.

    Raises:
        MissingExtraError: If a library of the extra is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in LIBRARIES:
            raise
        raise MissingExtraError(
            f"{library} is not installed: run pip install 'iproto-server[spark]' for this Python"
        ) from None


def explains_missing(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Decorate a function with `explain_missing`."""

    @wraps(function)
    def explained(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        with explain_missing():
            return function(*args, **kwargs)

    return explained
