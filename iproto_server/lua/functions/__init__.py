"""Functions of Python that the modules call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from iproto_server.lua.functions import compiled, environment, error_number, log, process

LATER: Final = {
    "account": "group_effective group_find group_names user_effective user_find user_names",
    "address": "address_of_number",
    "cipher": "cipher_begin cipher_end cipher_free_address cipher_update",
    "decimal_number": (
        "decimal_absolute decimal_add decimal_compare decimal_divide decimal_exponential "
        "decimal_logarithm decimal_logarithm10 decimal_minus decimal_multiply decimal_pack "
        "decimal_parse decimal_power decimal_remainder decimal_rescale decimal_round "
        "decimal_square_root decimal_subtract decimal_text decimal_trim decimal_unpack"
    ),
    "digest": "base64_decode base64_encode crc32c digest keyed_digest pbkdf2 random_bytes",
    "error_code": "error_codes",
    "file": (
        "directory_change directory_current directory_list directory_make directory_remove "
        "directory_temporary file_chmod file_chown file_close file_copy file_link file_open file_read "
        "file_readlink file_rename file_seek file_status file_symlink file_sync file_sync_all "
        "file_truncate file_umask file_unlink file_utime file_write group_number user_number"
    ),
    "identifier": "uuid_random",
    "tuple_operations": "tuple_update",
    "unicode_text": "unicode_category unicode_compare unicode_lower unicode_upper",
}
"""Modules that are imported when one of their functions is called first, so that scripts start quickly."""


class Later:
    """A function of a module that is imported at its first call."""

    __slots__ = ("_function", "_module", "_name")

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name
        self._function: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        if self._function is None:
            module = import_module(f"iproto_server.lua.functions.{self._module}")
            self._function = module.FUNCTIONS[self._name]
        return self._function(*arguments)


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: Later(module, name) for module, names in LATER.items() for name in names.split()},
    **compiled.FUNCTIONS,
    **environment.FUNCTIONS,
    **error_number.FUNCTIONS,
    **log.FUNCTIONS,
    **process.FUNCTIONS,
}
"""All of them, by name."""
