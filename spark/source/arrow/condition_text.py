"""The option `where`: comparisons with constants, joined by `and`, as in SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from pyspark_tarantool.source.errors import SourceError, shortened

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<binary>[xX]'(?:[0-9a-fA-F]{2})*')
      | (?P<string>'(?:[^']|'')*')
      | (?P<number>[+-]?[0-9]{1,78}(?:\.[0-9]{1,78})?)(?![\w.])
      | (?P<quoted>`[^`]+`)
      | (?P<word>[^\W\d]\w*(?:\.\w+)*)
      | (?P<sign><=>|<=|>=|<>|!=|==|[=<>(),])
    )""",
    re.VERBOSE,
)

_COMPARISONS: Final = {
    "=": EqualTo,
    "==": EqualTo,
    "<=>": EqualNullSafe,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
}
_DIFFERENT: Final = ("!=", "<>")
_LITERALS: Final = {"null": None, "true": True, "false": False}
_EXAMPLE: Final = "id >= 10 and id < 20 and status in ('ready', 'taken') and owner is not null"


class _Token(NamedTuple):
    kind: str
    text: str

    def is_word(self, word: str) -> bool:
        return self.kind == "word" and self.text.lower() == word


_END: Final = _Token("end", "")


def parse_condition(text: str, types: Mapping[str, pa.DataType]) -> list[Filter]:
    """Parse the option `where`.

    Parameters:
        text: Such as `id >= 10 and status in ('ready', 'taken')`.
        types: The columns that may be used, and their types.

    Returns:
        The filters, all of which must hold.

    Raises:
        SourceError: If it is malformed, uses another column, or compares a column with a value of another
            type.
    """
    return _Parser(text, types).conjunction()


class _Parser:
    def __init__(self, text: str, types: Mapping[str, pa.DataType]) -> None:
        self._text = text
        self._types = types
        self._tokens = list(self._split())
        self._next = 0

    def conjunction(self) -> list[Filter]:
        found = [self._comparison()]
        while self._skip_word("and"):
            found.append(self._comparison())
        if self._token is not _END:
            raise self._wrong(f"{self._token.text!r} is not expected: join comparisons by and")
        return found

    def _comparison(self) -> Filter:
        if self._skip_word("not"):
            return Not(self._comparison())
        column = self._column()
        if self._skip_word("is"):
            is_not = self._skip_word("not")
            if not self._skip_word("null"):
                raise self._wrong("null is expected after is")
            return IsNotNull((column,)) if is_not else IsNull((column,))
        is_not = self._skip_word("not")
        if self._skip_word("in"):
            found = In((column,), tuple(self._list(column)))
            return Not(found) if is_not else found
        sign = self._advance()
        if sign.text in _DIFFERENT and not is_not:
            return Not(EqualTo((column,), self._value(column)))
        if sign.text not in _COMPARISONS or is_not:
            raise self._wrong(f"a comparison is expected after {column!r}")
        return _COMPARISONS[sign.text]((column,), self._value(column))

    def _column(self) -> str:
        token = self._advance()
        name = token.text.strip("`")
        if token.kind not in ("word", "quoted"):
            raise self._wrong(f"the name of a column is expected instead of {token.text!r}")
        if name not in self._types:
            known = ", ".join(self._types) or "none"
            raise self._wrong(f"the column {name!r} cannot be filtered while reading: these can: {known}")
        return name

    def _list(self, column: str) -> Iterator[Any]:
        if self._advance().text != "(":
            raise self._wrong("a list in parentheses is expected after in")
        while True:
            yield self._value(column)
            sign = self._advance().text
            if sign == ")":
                return
            if sign != ",":
                raise self._wrong("a list ends with )")

    def _value(self, column: str) -> Any:
        token, kind = self._advance(), self._types[column]
        if token.kind == "word" and token.text.lower() in _LITERALS:
            value = _LITERALS[token.text.lower()]
            if value is None or pa.types.is_boolean(kind):
                return value
        elif token.kind == "number":
            if pa.types.is_integer(kind) and "." not in token.text:
                return int(token.text)
            if pa.types.is_decimal(kind):
                return Decimal(token.text)
        elif token.kind == "binary":
            if pa.types.is_binary(kind):
                return bytes.fromhex(token.text[2:-1])
        elif token.kind == "string":
            text = token.text[1:-1].replace("''", "'")
            if pa.types.is_string(kind):
                return text
            if pa.types.is_timestamp(kind):
                return self._moment(text)
        raise self._wrong(f"the column {column!r} of the type {kind} cannot be compared with {token.text}")

    def _moment(self, text: str) -> datetime:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise self._wrong(f"{text!r} is not a time such as '2026-01-31T12:00:00Z'") from None
        if moment.tzinfo is None:
            raise self._wrong(f"{text!r} has no time zone: add Z or an offset")
        return moment

    # -- tokens --

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _advance(self) -> _Token:
        token = self._token
        if token is _END:
            raise self._wrong("it ends too early")
        self._next += 1
        return token

    def _skip_word(self, word: str) -> bool:
        is_there = self._token.is_word(word)
        self._next += is_there
        return is_there

    def _split(self) -> Iterator[_Token]:
        text, place = self._text.rstrip(), 0
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None or match.lastgroup is None:
                raise self._wrong(f"{shortened(text[place:].lstrip(), 20)} is not understood")
            yield _Token(match.lastgroup, match[match.lastgroup])
            place = match.end()
        yield _END

    def _wrong(self, reason: str) -> SourceError:
        return SourceError(f'the option "where" is {shortened(self._text)}: {reason}; an example: {_EXAMPLE}')
