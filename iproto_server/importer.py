"""Find an object by "module:attribute", and say clearly why it cannot be found."""

from __future__ import annotations

import importlib
import traceback


class ApplicationImportError(Exception):
    """The application cannot be imported; the message is one line that names the module or the attribute."""


def import_object(target: str) -> object:
    """Import what "module:attribute" names.

    Parameters:
        target: a module's dotted name, a colon, and an attribute of it (dots reach into the attribute).

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
        # The module itself (or a package it is in) is missing, as opposed to something that it imports.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise _raised(target, module_name, error) from error
        raise ApplicationImportError(
            f'cannot import "{target}": there is no module "{error.name}"'
        ) from error
    except (
        Exception,
        SystemExit,
    ) as error:  # a module may raise anything; all of it means "cannot be imported"
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
