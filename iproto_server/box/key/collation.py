"""Collations: orders of texts, defined by rows of `_collation`.

In an index part with a collation, a text is encoded as its sort key (`icu.py`) instead of its bytes.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from iproto_server.box.key.icu import ATTRIBUTES, sort_key_of
from iproto_server.box.key.key_encoding import Encoder, encode_string
from iproto_server.box.types.identifier import NAME_MAX, check_identifier
from iproto_server.box.types.option_types import check_option_types
from iproto_server.errors import BoxError, ErrorCode

NONE_ID: Final = 0
"""The number of the collation `none`, which means no collation."""

_LOCALE_MAX: Final = 30
_OPTIONS_FIELD: Final = 5
_UINT32_MASK: Final = 0xFFFFFFFF
_OPTION_TYPES: Final = dict.fromkeys(ATTRIBUTES, "enum")


@dataclass(frozen=True, slots=True)
class Collation:
    """One collation.

    Attributes:
        name: its name.
        is_binary: whether it compares bytes.
        locale: ICU's name of the language.
        options: ICU's options and their values, in capitals and in order.
    """

    name: str
    is_binary: bool
    locale: str = ""
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, row: Sequence[Any]) -> Collation:
        """Read a row of `_collation` that fits the space's format.

        Raises:
            BoxError: CANT_CREATE_COLLATION (150), WRONG_COLLATION_OPTIONS (151), IDENTIFIER (70).
        """
        _, name, _, kind, locale, options = row[:6]

        def refuse(reason: str) -> BoxError:
            return BoxError(ErrorCode.CANT_CREATE_COLLATION, reason)

        if len(name.encode("utf-8", "surrogateescape")) > NAME_MAX:
            raise refuse("collation name is too long")
        check_identifier(name)
        if kind.upper() not in ("ICU", "BINARY"):
            raise refuse("unknown collation type")
        if len(locale.encode("utf-8", "surrogateescape")) > _LOCALE_MAX:
            raise refuse("collation locale is too long")
        if locale:
            check_identifier(locale)
        check_option_types(options, _OPTION_TYPES, _OPTIONS_FIELD, ErrorCode.WRONG_COLLATION_OPTIONS)
        for option, (_, values) in ATTRIBUTES.items():
            if option in options and options[option].upper() not in values:
                raise refuse(f"ICU wrong {option} option setting, expected {' | '.join(values)}")
        in_order = tuple((option, options[option].upper()) for option in ATTRIBUTES if option in options)
        return cls(name, kind.upper() == "BINARY", locale, in_order)

    def compares_like(self, other: Collation) -> bool:
        """Tell whether both compare in the same way, whatever their names."""
        if self.is_binary or other.is_binary:
            return self.is_binary and other.is_binary
        return (self.locale, self.options) == (other.locale, other.options)

    @property
    def encode(self) -> Encoder:
        """The encoder of texts in the order of the collation; see `key_encoding` for its requirements.

        Raises:
            BoxError: UNSUPPORTED (5) without ICU, CANT_CREATE_COLLATION (150) if ICU refuses the collation.
        """
        return encode_string if self.is_binary else _encoder(self.locale, self.options)


@cache
def _encoder(locale: str, options: tuple[tuple[str, str], ...]) -> Encoder:
    return sort_key_of(locale, dict(options))


Collations = Mapping[int, Collation]
"""All collations, by number."""


@cache
def built_in_collations() -> Collations:
    """The collations of a freshly bootstrapped Tarantool 2.6."""
    text = pkgutil.get_data("iproto_server.box.catalog", "bootstrap.json")
    assert text is not None
    return {row[0] & _UINT32_MASK: Collation.parse(row) for row in json.loads(text)["_collation"]}
