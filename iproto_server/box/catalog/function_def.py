"""Definitions of functions, from rows of `_func`.

Checks follow the order of Tarantool 2.6, so a row with two faults is refused for the same one. A Lua body is
stored and never run: calls go to the application's procedure of that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from iproto_server.box.catalog.foreign.definitions import NEWER_FIELD_TYPES, unserved
from iproto_server.box.types.field_type import FieldType
from iproto_server.box.types.identifier import NAME_MAX, check_identifier
from iproto_server.errors import BoxError, ErrorCode

FUNCTION_ID_MAX: Final = 32000
SQL_BUILTIN: Final = "SQL_BUILTIN"
"""The language of SQL's built-in functions, which cannot be created or dropped."""

_NAME_SHOWN: Final = 64
_UINT32_MASK: Final = 0xFFFFFFFF
_PARAMETERS_FIELD: Final = 8
_EXPORTS_FIELD: Final = 15
_OPTIONS_FIELD: Final = 15
"""Counts from 0 in the message."""
_COMMENT: Final = 16
_TRIGGER: Final = 19
_LANGUAGES: Final = ("LUA", "C", SQL_BUILTIN)
_LANGUAGES_KEPT: Final = ("SQL", "SQL_EXPR")
"""Languages of stored functions that SQL alone calls."""
_EARLY_FIELDS: Final = 4
_LATER_FIELDS: Final[list[Any]] = [
    "LUA",
    "",
    "function",
    [],
    "any",
    "none",
    "none",
    False,
    False,
    True,
    ["LUA"],
    {},
]
"""Fields that Tarantool 2.2 has added to `_func`, with their defaults."""


@dataclass(frozen=True, slots=True)
class Function:
    """A row of `_func`: an owner for a procedure, so that privileges on it can be granted.

    Attributes:
        id: its number.
        owner: user id of the owner.
        name: its name.
        setuid: whether it runs with its owner's privileges.
        language: `LUA`, `C` or `SQL_BUILTIN`; `SQL` or `SQL_EXPR` if another version has stored it.
    """

    id: int
    owner: int
    name: str
    setuid: bool
    language: str

    @classmethod
    def parse(cls, row: Sequence[Any], *, is_stored: bool = False) -> Self:
        """Read a row of `_func`.

        Parameters:
            row: the decoded row, which fits the space's format.
            is_stored: whether the row may have what only other versions of Tarantool can add.

        Raises:
            BoxError: CREATE_FUNCTION (50), IDENTIFIER (70), FUNCTION_LANGUAGE (100), FIELD_TYPE (23),
                WRONG_SPACE_OPTIONS (111); UNSUPPORTED (5) for a trigger.
        """
        function_id, owner, name, setuid, language, body, routine_type, parameters, returns = row[:9]
        aggregate, data_access, _deterministic, is_sandboxed, is_null_call, exports, options = row[9:16]
        language = language.upper()

        def refuse(reason: str) -> BoxError:
            return BoxError(ErrorCode.CREATE_FUNCTION, name, reason)

        if len(name.encode("utf-8", "surrogateescape")) > NAME_MAX:
            raise BoxError(ErrorCode.CREATE_FUNCTION, name[:_NAME_SHOWN], "function name is too long")
        check_identifier(name)
        for reason, is_wrong in (
            ("unsupported routine_type value", routine_type.lower() != "function"),
            ("unsupported sql_data_access value", data_access.lower() != "none"),
            ("unsupported is_null_call value", is_null_call is not True),
            ("function id is too big", function_id & _UINT32_MASK > FUNCTION_ID_MAX),
        ):
            if is_wrong:
                raise refuse(reason)
        if language not in _LANGUAGES and not (is_stored and language in _LANGUAGES_KEPT):
            raise BoxError(ErrorCode.FUNCTION_LANGUAGE, row[4], name)
        if not _is_type(returns, is_stored):
            raise refuse("invalid returns value")
        for export in _strings(exports, _EXPORTS_FIELD):
            if export.upper() not in ("LUA", "SQL"):
                raise refuse("invalid exports value")
        if aggregate.lower() not in ("none", "group"):
            raise refuse("invalid aggregate value")
        for parameter in _strings(parameters, _PARAMETERS_FIELD):
            if not _is_type(parameter, is_stored):
                raise refuse("invalid argument type")
        _check_options(options, is_stored)
        if len(row) > _TRIGGER and isinstance(row[_TRIGGER], list) and row[_TRIGGER]:
            raise unserved("a stored function that runs as a trigger")
        if language not in ("LUA", *_LANGUAGES_KEPT) and (body or is_sandboxed):
            language_name = "C" if language == "C" else "SQL"
            raise refuse(f"body and is_sandboxed options are not compatible with {language_name} language")
        if is_sandboxed and not body:
            raise refuse(
                "is_sandboxed option may be set only for a persistent Lua function "
                "(one with a non-empty body)"
            )
        return cls(function_id, owner, name, bool(setuid), language)


def completed(row: Sequence[Any]) -> list[Any]:
    """A row of `_func` with the fields added by Tarantool 2.2."""
    return [*row, *_LATER_FIELDS[len(row) - _EARLY_FIELDS :]]


def is_same_definition(old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Whether two rows of `_func` define the same function; times, for example, may differ."""
    return _definition(old) == _definition(new)


def _definition(row: Sequence[Any]) -> tuple[object, ...]:
    """The immutable part of a row of `_func`; as in Tarantool 2.6, only the number of parameters counts."""
    function_id, owner, name, setuid, language, body, _routine_type, parameters, returns = row[:9]
    aggregate, _data_access, is_deterministic, is_sandboxed, _is_null_call, exports, options = row[9:16]
    comment = row[_COMMENT] if len(row) > _COMMENT else ""
    return (
        (function_id, owner, name, bool(setuid), language.upper(), body, len(parameters)),
        (FieldType.by_name(returns.lower()), aggregate.lower(), is_deterministic, is_sandboxed),
        ({export.upper() for export in exports}, options.get("is_multikey", False), comment),
    )


def _strings(values: Sequence[Any], field_number: int) -> Sequence[str]:
    for value in values:
        if not isinstance(value, str):
            raise BoxError(ErrorCode.FIELD_TYPE, field_number, "string")
    return values


def _is_type(name: str, is_stored: bool) -> bool:
    """Whether a function may have a parameter or a result of that type."""
    return FieldType.by_name(name.lower()) is not None or (is_stored and name.lower() in NEWER_FIELD_TYPES)


def _check_options(options: dict[Any, Any], is_stored: bool) -> None:
    known = ("is_multikey", "takes_raw_args") if is_stored else ("is_multikey",)
    for option, value in options.items():
        if not isinstance(option, str):
            reason = "key must be a string"
        elif option not in known:
            reason = f"unexpected option '{option}'"
        elif not isinstance(value, bool):
            reason = f"'{option}' must be boolean"
        else:
            continue
        raise BoxError(ErrorCode.WRONG_SPACE_OPTIONS, _OPTIONS_FIELD, reason)
