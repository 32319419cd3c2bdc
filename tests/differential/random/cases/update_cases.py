"""Random tuples and update operations, most of them nearly valid, as bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import msgpack

from tests.differential.random.values.draws import Draws
from tests.differential.random.values.packing import decimal

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


def update_case(draws: Draws, row_id: int) -> UpdateCase:
    """Choose a row and operations.

    Parameters:
        draws: The source of choices.
        row_id: The row's primary key.
    """
    return _UpdateCases(draws).case(row_id)


class _UpdateCases:
    """Draws cases, in which later choices depend on earlier ones.

    Parameters:
        draws: The source of choices.
    """

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self._crowded: int | None = None

    def case(self, row_id: int) -> UpdateCase:
        """Draw one case."""
        draws = self._draws
        fields = [
            _packed(row_id),
            self._number(),
            self._text(),
            self._container(3, "m"),
            self._container(3, "a"),
            b"\xc0" if draws.rarely(10) else b"\xcb" + struct.pack(">d", draws.pick(_DOUBLES)),
        ]
        fields += [self._value(2) for _ in range(draws.pick((0, 0, 1, 2, 3)))]
        row = _array(fields, draws.rarely(10))
        index_base = draws.pick((0, 0, 0, 1, 1, 2))
        count = draws.pick((1, 1, 1, 2, 2, 3, 4, 6))
        # Occasionally many operations apply to one field.
        if draws.rarely(3):
            self._crowded = draws.pick((3, 4))
            count = 2 + draws.below(7)
            fields[self._crowded] = self._container(4, "ma"[self._crowded - 3], least=3)
            row = _array(fields, False)
        operations = [self._operation(fields, index_base, count == 1) for _ in range(count)]
        return UpdateCase(row_id, row, _array(operations, draws.rarely(20)), index_base)

    # -- values --

    def _value(self, depth: int) -> bytes:
        kind = self._draws.below(8)
        if depth > 2:
            kind = 5
        if kind < 2:
            return self._number()
        if kind < 4:
            return self._text()
        if kind < 6 and depth:
            return self._container(depth, self._draws.pick("ma"))
        others = (None, True, False, b"", b"binary", msgpack.ExtType(77, b"xy"))
        return _packed(self._draws.pick(others))

    def _number(self) -> bytes:
        draws = self._draws
        kind = draws.below(8)
        if kind < 4:
            number = draws.pick(_NUMBERS)
            if draws.rarely(2):
                number = max(-number, -(2**63))
            if number < 2**63 and draws.rarely(5):
                return b"\xd3" + struct.pack(">q", number)
            return _packed(number)
        if kind == 4:
            return b"\xca" + struct.pack(">f", draws.pick((0.5, 1.1, -3.0, 1e10, 3.4e38, float("inf"))))
        if kind == 5:
            return b"\xcb" + struct.pack(">d", draws.pick(_DOUBLES) * draws.pick((1, -1)))
        if kind == 6:
            return decimal(draws.pick(_DECIMALS)).raw
        return _packed(draws.below(200) - 100)

    def _text(self) -> bytes:
        draws = self._draws
        text = draws.pick(_TEXTS).encode()
        if draws.rarely(10):
            return b"\xd9" + bytes((len(text),)) + text
        return _packed(text.decode())

    def _container(self, depth: int, kind: str, least: int = 0) -> bytes:
        draws = self._draws
        long = draws.rarely(10)
        if kind == "a":
            return _array([self._value(depth - 1) for _ in range(least + draws.below(6 - least))], long)
        keys: list[Any] = draws.sample(_KEYS, least + draws.below(len(_KEYS) + 1 - least))
        keys += draws.sample((1, 2, -1, True, None), draws.pick((0, 0, 0, 1, 2)))
        if keys and draws.rarely(20):
            keys.append(keys[0])
        keys = draws.sample(keys, len(keys))
        header = b"\xde" + len(keys).to_bytes(2, "big") if long else bytes((0x80 | len(keys),))
        return header + b"".join(_packed(key) + self._value(depth - 1) for key in keys)

    # -- operations --

    def _operation(self, fields: list[bytes], index_base: int, alone: bool) -> bytes:
        draws = self._draws
        number, field, target, may_delete = self._field(fields, index_base, alone)
        opcode = draws.pick(self._fitting(target) if not draws.rarely(7) else _OPCODES)
        if opcode == "#" and not may_delete:
            opcode = "="
        parts = [_packed(opcode), field]
        if opcode in "=!":
            if number == DOUBLE_FIELD and not draws.rarely(5):
                parts.append(b"\xcb" + struct.pack(">d", 0.25))
            else:
                parts.append(self._value(2))
        elif opcode == "#":
            counts = (1, 1, 1, 1, 1, 1, 2, 3, 100) if not draws.rarely(33) else (0, 2**32, -1, "x")
            parts.append(_packed(draws.pick(counts)))
        elif opcode in "+-":
            parts.append(self._number() if not draws.rarely(20) else self._value(1))
        elif opcode in "&|^":
            parts.append(_packed(draws.pick(_NUMBERS)) if not draws.rarely(10) else self._value(1))
        else:
            lengths = (0, 1, 2, 3, -1, -2, -6, -7, 50, 2**31 - 1, -(2**31) + 1)
            parts.append(_packed(draws.pick(lengths[:5] if not draws.rarely(3) else lengths)))
            parts.append(_packed(draws.pick((*lengths, 2**31))))
            parts.append(self._text() if not draws.rarely(20) else self._value(1))
        if draws.rarely(100):
            return self._spoil(parts)
        return _array(parts, draws.rarely(20))

    def _fitting(self, target: Any) -> str:
        """Return the opcodes that a value supports."""
        if isinstance(target, int) and not isinstance(target, bool) and target >= 0:
            return "=!#+-&|^+-"
        if isinstance(target, int | float | msgpack.ExtType):
            return "=!#+-+-"
        return "=!#:::" if isinstance(target, str) else "==!!#"

    def _spoil(self, parts: list[bytes]) -> bytes:
        draws = self._draws
        kind = draws.below(6)
        if kind == 0:
            return self._value(1)
        if kind == 1:
            parts[0] = _packed(draws.pick(("", "==", "?", "%d", 5, None, b"=")))
        elif kind == 2:
            parts[1] = _packed(draws.pick((None, 1.0, True, b"n", [1])))
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
        draws = self._draws
        # Rarely the primary key: an UPDATE of it is refused.
        number = 0 if draws.rarely(50) else draws.below(len(fields) + draws.pick((-1, -1, 0))) + 1
        if self._crowded is not None or number in (3, 4) or draws.rarely(3):
            number = self._crowded or draws.pick((3, 4))
            if not draws.rarely(7):
                path, target, may_delete = self._path(number, fields[number], alone)
                return number, _packed(path), target, may_delete
        target = _unpacked(fields[number]) if number < len(fields) else None
        return number, _packed(self._name(number, len(fields), index_base)), target, True

    def _name(self, number: int, count: int, index_base: int) -> str | int:
        """Name a top-level field."""
        draws = self._draws
        kind = draws.below(50)
        if kind < 23 or (kind < 38 and number >= len(FIELD_NAMES)):
            return number + index_base
        if kind < 38:
            return FIELD_NAMES[number]
        if kind < 43:
            return f"[{number + 1}]"
        if kind < 48:
            return number - count - draws.pick((0, 0, 0, 0, 1, count))
        if kind < 49:
            return draws.pick(("nosuch", "", "[0]", "*", "[*]", "1", "nosuch.x", "x.y.z"))
        return number + draws.pick((0, 1, 2, 2**31 - 20))

    def _path(self, number: int, raw: bytes, alone: bool) -> tuple[str, Any, bool]:
        draws = self._draws
        path = FIELD_NAMES[number] if not draws.rarely(3) else f"[{number + 1}]"
        value: Any = _unpacked(raw)
        may_delete = True
        while True:
            if isinstance(value, list):
                may_delete = True
                index = draws.below(len(value) + draws.pick((0, 0, 1, 3)) or 1)
                path += f"[{index + 1}]"
                value = value[index] if index < len(value) else None
            elif isinstance(value, dict):
                keys = [key for key in value if isinstance(key, str) or (alone and key in (1, 2))]
                key: Any = draws.pick(keys if keys and not draws.rarely(3) else _KEYS)
                may_delete = isinstance(key, str)
                path += self._spelled(key, alone) if may_delete else f"[{key}]"
                value = value.get(key)
            elif draws.rarely(33):
                path += draws.pick((".a", "[1]"))
                break
            else:
                break
            if draws.rarely(7):
                break
        if draws.rarely(33):
            place = draws.below(len(path) + 1)
            path = path[:place] + draws.pick(_SPOILT) + path[place:]
            may_delete = False
        return path, value, may_delete

    def _spelled(self, key: str, alone: bool) -> str:
        # Tarantool 2.6.0 crashes if operations spell one path in two ways.
        return self._draws.pick((f".{key}", f'["{key}"]', f"['{key}']")) if alone else f".{key}"


def _packed(value: object) -> bytes:
    raw: bytes = msgpack.packb(value)
    return raw


def _unpacked(raw: bytes) -> Any:
    """A value; of maps with a key twice, and of extensions, something with which a path is chosen as well."""
    return msgpack.unpackb(raw, strict_map_key=False)


def _array(items: list[bytes], long: bool) -> bytes:
    header = b"\xdc" + len(items).to_bytes(2, "big") if long else bytes((0x90 | len(items),))
    return header + b"".join(items)
