"""Random tuples and update operations, most of them nearly right, as bytes."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import msgpack

from iproto_server import codec

FIELD_NAMES: Final = ("id", "n", "s", "m", "a", "d", "x.y", "ё")
"""The names of the format. One looks like a path; `d` is of type double, the others but for `id` of any."""

DOUBLE_FIELD: Final = FIELD_NAMES.index("d")

# None is the beginning of another: Tarantool 2.6.0 takes ".ab" for a way on from ".a" then.
_KEYS: Final = ("a", "b", "c", "key", "длина")
_NUMBERS: Final = (
    0,
    1,
    2,
    7,
    127,
    128,
    255,
    256,
    65535,
    65536,
    2**31,
    2**32,
    2**53 + 1,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
_DOUBLES: Final = (
    0.0,
    -0.0,
    0.1,
    0.5,
    1.5,
    3.0e38,
    3.5e38,
    1e300,
    1e-300,
    123456789.125,
    16777217.0,
    1e20,
    1e37,
    1e38,
)
_DECIMALS: Final = (
    "0",
    "-0.00",
    "1.5",
    "1e5",
    "3.14159",
    "9" * 38,
    "-" + "9" * 38,
    "0." + "9" * 38,
    "1e-37",
    "-7e20",
    "1e37",
)
_TEXTS: Final = ("", "T", "hello", "déjà vu", "0123456789" * 5)
_OPCODES: Final = "=!#+-&|^:"
_SPOILT: Final = (
    "[",
    "]",
    "[]",
    "[0]",
    "[*]",
    "['",
    '[""]',
    ".",
    "..a",
    ".1",
    "[1",
    "[a]",
    "[-1]",
    " ",
    ".ё",
    "[1].",
    "%s",
    "%d",
)


@dataclass(frozen=True, slots=True)
class UpdateCase:
    """One request and the row it meets.

    Attributes:
        row_id: the row's primary key.
        row: the row.
        operations: the request's operations.
        index_base: what the request counts from.
    """

    row_id: int
    row: bytes
    operations: bytes
    index_base: int


class UpdateCases:
    """A source of cases.

    Parameters:
        seed: the same seed makes the same cases.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = 0
        self._crowded: int | None = None

    def __next__(self) -> UpdateCase:
        self._count += 1
        chance = self._random
        fields = [
            _packed(self._count),
            self._number(),
            self._text(),
            self._container(3, "m"),
            self._container(3, "a"),
            b"\xcb" + struct.pack(">d", chance.choice(_DOUBLES)) if chance.random() < 0.9 else b"\xc0",
        ]
        fields += [self._value(2) for _ in range(chance.choice((0, 0, 1, 2, 3)))]
        row = _array(fields, chance.random() < 0.1)
        index_base = chance.choice((0, 0, 0, 1, 1, 2))
        count = chance.choice((1, 1, 1, 2, 2, 3, 4, 6))
        # Now and then many operations meet in one field.
        self._crowded = chance.choice((3, 4)) if chance.random() < 0.3 else None
        if self._crowded is not None:
            count = chance.randrange(2, 9)
            fields[self._crowded] = self._container(4, "ma"[self._crowded - 3], least=3)
            row = _array(fields, False)
        operations = [self._operation(fields, index_base, count == 1) for _ in range(count)]
        return UpdateCase(self._count, row, _array(operations, chance.random() < 0.05), index_base)

    def __iter__(self) -> UpdateCases:
        return self

    # -- values --

    def _value(self, depth: int) -> bytes:
        kind = self._random.randrange(8)
        if depth > 2:
            kind = 5
        if kind < 2:
            return self._number()
        if kind < 4:
            return self._text()
        if kind < 6 and depth:
            return self._container(depth, self._random.choice("ma"))
        others = (None, True, False, b"", b"binary", msgpack.ExtType(77, b"xy"))
        return _packed(self._random.choice(others))

    def _number(self) -> bytes:
        chance = self._random
        kind = chance.randrange(8)
        if kind < 4:
            number = chance.choice(_NUMBERS)
            if chance.random() < 0.4:
                number = max(-number, -(2**63))
            if number < 2**63 and chance.random() < 0.2:
                return b"\xd3" + struct.pack(">q", number)
            return _packed(number)
        if kind == 4:
            return b"\xca" + struct.pack(">f", chance.choice((0.5, 1.1, -3.0, 1e10, 3.4e38, float("inf"))))
        if kind == 5:
            return b"\xcb" + struct.pack(">d", chance.choice(_DOUBLES) * chance.choice((1, -1)))
        if kind == 6:
            return codec.pack(Decimal(chance.choice(_DECIMALS)))
        return _packed(chance.randrange(-100, 100))

    def _text(self) -> bytes:
        text = self._random.choice(_TEXTS).encode()
        if self._random.random() < 0.1:
            return b"\xd9" + bytes((len(text),)) + text
        return _packed(text.decode())

    def _container(self, depth: int, kind: str, least: int = 0) -> bytes:
        chance = self._random
        long = chance.random() < 0.1
        if kind == "a":
            return _array([self._value(depth - 1) for _ in range(chance.randrange(least, 6))], long)
        keys: list[Any] = chance.sample(_KEYS, chance.randrange(least, len(_KEYS) + 1))
        keys += chance.sample((1, 2, -1, True, None), chance.choice((0, 0, 0, 1, 2)))
        if keys and chance.random() < 0.05:
            keys.append(keys[0])
        chance.shuffle(keys)
        header = b"\xde" + len(keys).to_bytes(2, "big") if long else codec.map_header(len(keys))
        return header + b"".join(_packed(key) + self._value(depth - 1) for key in keys)

    # -- operations --

    def _operation(self, fields: list[bytes], index_base: int, alone: bool) -> bytes:
        chance = self._random
        number, field, target, may_delete = self._field(fields, index_base, alone)
        opcode = chance.choice(self._fitting(target) if chance.random() < 0.85 else _OPCODES)
        if opcode == "#" and not may_delete:
            opcode = "="
        parts = [_packed(opcode), field]
        if opcode in "=!":
            if number == DOUBLE_FIELD and chance.random() < 0.8:
                parts.append(b"\xcb" + struct.pack(">d", 0.25))
            else:
                parts.append(self._value(2))
        elif opcode == "#":
            counts = (1, 1, 1, 1, 1, 1, 2, 3, 100) if chance.random() < 0.97 else (0, 2**32, -1, "x")
            parts.append(_packed(chance.choice(counts)))
        elif opcode in "+-":
            parts.append(self._number() if chance.random() < 0.95 else self._value(1))
        elif opcode in "&|^":
            parts.append(_packed(chance.choice(_NUMBERS)) if chance.random() < 0.9 else self._value(1))
        else:
            lengths = (0, 1, 2, 3, -1, -2, -6, -7, 50, 2**31 - 1, -(2**31) + 1)
            parts.append(_packed(chance.choice(lengths[:5] if chance.random() < 0.7 else lengths)))
            parts.append(_packed(chance.choice((*lengths, 2**31))))
            parts.append(self._text() if chance.random() < 0.95 else self._value(1))
        if chance.random() < 0.01:
            return self._spoil(parts)
        return _array(parts, chance.random() < 0.05)

    def _fitting(self, target: Any) -> str:
        """Opcodes that a value may have."""
        if isinstance(target, int) and not isinstance(target, bool) and target >= 0:
            return "=!#+-&|^+-"
        if isinstance(target, int | float | Decimal):
            return "=!#+-+-"
        return "=!#:::" if isinstance(target, str) else "==!!#"

    def _spoil(self, parts: list[bytes]) -> bytes:
        chance = self._random
        kind = chance.randrange(6)
        if kind == 0:
            return self._value(1)
        if kind == 1:
            parts[0] = _packed(chance.choice(("", "==", "?", "%d", 5, None, b"=")))
        elif kind == 2:
            parts[1] = _packed(chance.choice((None, 1.0, True, b"n", [1])))
        elif kind == 3:
            parts.append(_packed(1))
        elif kind == 4:
            parts.pop()
        else:
            parts.clear()
        return _array(parts, False)

    def _field(self, fields: list[bytes], index_base: int, alone: bool) -> tuple[int, bytes, Any, bool]:
        """Choose a field.

        Returns:
            Its top-level field's number, how the request names it, its value, and whether it may be deleted.
        """
        chance = self._random
        # The primary key rarely: an UPDATE of it is refused.
        number = chance.randrange(1 if chance.random() < 0.98 else 0, len(fields) + chance.choice((0, 0, 1)))
        if self._crowded is not None or number in (3, 4) or chance.random() < 0.3:
            number = self._crowded or chance.choice((3, 4))
            if chance.random() < 0.85:
                path, target, may_delete = self._path(number, fields[number], alone)
                return number, _packed(path), target, may_delete
        target = codec.unpack(fields[number]) if number < len(fields) else None
        return number, _packed(self._name(number, len(fields), index_base)), target, True

    def _name(self, number: int, count: int, index_base: int) -> str | int:
        """Name a top-level field."""
        chance = self._random
        kind = chance.random()
        if kind < 0.3 and number < len(FIELD_NAMES):
            return FIELD_NAMES[number]
        if kind < 0.4:
            return f"[{number + 1}]"
        if kind < 0.5:
            return number - count - chance.choice((0, 0, 0, 0, 1, count))
        if kind < 0.52:
            return chance.choice(("nosuch", "", "[0]", "*", "[*]", "1", "nosuch.x", "x.y.z"))
        if kind < 0.54:
            return number + chance.choice((0, 1, 2, 2**31 - 20))
        return number + index_base

    def _path(self, number: int, raw: bytes, alone: bool) -> tuple[str, Any, bool]:
        chance = self._random
        path = FIELD_NAMES[number] if chance.random() < 0.7 else f"[{number + 1}]"
        value: Any = codec.unpack(raw)
        may_delete = True
        while True:
            if isinstance(value, list):
                may_delete = True
                index = chance.randrange(len(value) + chance.choice((0, 0, 1, 3)) or 1)
                path += f"[{index + 1}]"
                value = value[index] if index < len(value) else None
            elif isinstance(value, dict):
                keys = [key for key in value if isinstance(key, str) or (alone and key in (1, 2))]
                key: Any = chance.choice(keys if keys and chance.random() < 0.7 else _KEYS)
                may_delete = isinstance(key, str)
                path += self._spelled(key, alone) if may_delete else f"[{key}]"
                value = value.get(key)
            elif chance.random() < 0.03:
                path += chance.choice((".a", "[1]"))
                break
            else:
                break
            if chance.random() < 0.15:
                break
        if chance.random() < 0.03:
            place = chance.randrange(len(path) + 1)
            path = path[:place] + chance.choice(_SPOILT) + path[place:]
            may_delete = False
        return path, value, may_delete

    def _spelled(self, key: str, alone: bool) -> str:
        # Tarantool 2.6.0 breaks when operations spell one way in two ways.
        return self._random.choice((f".{key}", f'["{key}"]', f"['{key}']")) if alone else f".{key}"


def _packed(value: object) -> bytes:
    raw: bytes = msgpack.packb(value)
    return raw


def _array(items: list[bytes], long: bool) -> bytes:
    header = b"\xdc" + len(items).to_bytes(2, "big") if long else codec.array_header(len(items))
    return header + b"".join(items)
