"""Random snippets of Lua that encode and decode with json and yaml."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from tests.lua.modules.random_snippets.values import quoted

PREAMBLE = (
    "local json, yaml, ffi = require('json'), require('yaml'), require('ffi') local t1, t2 = {}, {a = 1} "
)


def _words(text: str) -> list[str]:
    return text.split()


PIECES = [
    *_words("a b c x1 1 2 0 -1 +1 1.5 1e5 .5 5. 0x1F 017 inf nan -inf Infinity 100000000000000"),
    *_words("18446744073709551616 true false yes no null ~ on nil Null 1LL - -- --- ... ? ?a : :a a: a:b"),
    *_words("""[ ] { } , #c & * ! | > ' " % @ ` \\ = << / . _ $ ( ) '' é 日本 😀"""),
    *("#", " ", "  ", "\n", "\n\n", "\n ", " \n", "\t", "\r", "\r\n", ": ", "- ", " #", "\u2028"),
]
RARE = [
    *("\0", "\x01", "\x1b", "\x7f", "\x85", "\ufeff", "\ufffe", "\u0378", "\U0001fffe"),
    *("word " * 20, "long" * 50),
]
BYTES = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"]

NUMBERS = [
    *_words(
        "0 1 -1 2 10 127 255 65536 1.5 -0.25 1/3 -1/3 1e15 1e14 1e300 -1e300 2^53 2^53+2 2^63 2^64 -2^63"
    ),
    *_words(
        "-2^64 1e-7 5e-324 123456789.125 1LL -1LL 5ULL 18446744073709551615ULL -9223372036854775807LL 1/0"
    ),
    *_words("-1/0 -0.0 1e20 99999999999999 0.1+0.2"),
]
_CTYPES = ("int8_t", "uint16_t", "int", "int64_t", "uint64_t", "float", "double", "bool", "char", "long long")
CDATA = [
    *(f"ffi.new('{kind}', {value})" for kind in _CTYPES for value in ("0", "1", "65", "1.5", "-3")),
    *("json.NULL", "ffi.new('void *', nil)", "ffi.cast('void *', 16)", "ffi.new('int[2]')"),
    "ffi.typeof('int')",
]
HINTS = ["seq", "map", "sequence", "mapping", "array", "bad"]

JSON_TOKENS = [
    *_words("[ ] { } , : 1 -1 0 01 1.5 1e5 1e -0 0.0 1. .5 - inf -inf nan 0x1 true false null tru nulls"),
    *_words(r""""a" "b" "" "a\n" "\u00e9" "\ud83d\ude00" "\ud83d" "\q" "\u12" "a 100000000000000 x é"""),
    *_words("9223372036854775807 18446744073709551616 1e400"),
    *(" ", "\n", '"a\nb"', '"a\tb"', "\0"),
]
YAML_TOKENS = [
    *_words("a b c 1 1.5 true null ~ - ? : , [ ] { } # & &a &b * *a *b ! !a !!str !!int !!float !!bool"),
    *_words(r"""!!null !!binary !!map !<x> | > |- >+ |2 |+ ' " 'q' "q" 'it''s' "\n" "\x41" "\q" ---"""),
    *_words("... % %YAML %TAG 0x1F 100000000000000 1e3 a:b << é"),
    *(" ", "  ", "\n", "\n  ", "\n ", "\n    ", ": ", "- ", "? ", " #c\n", "\t", "\n\n", "\r\n", "\x85"),
    *("- ", ": ", "\n", "\n  ", ", ", "\u2028", "\\\n", "\n---\n", "\n...\n"),
    *("%YAML 1.1\n---\n", "%TAG ! x\n--- ", "!!binary AQ=="),
]


def _some(random: Random, items: Sequence[str], least: int, most: int) -> list[str]:
    return random.choices(items, k=random.randint(least, most))


def _text(random: Random) -> str:
    parts = [each.encode() for each in _some(random, PIECES, 0, random.choice((1, 2, 4, 30)))]
    if random.random() < 0.1:
        parts.insert(random.randint(0, len(parts)), random.choice(RARE).encode())
    if random.random() < 0.04:
        parts.insert(random.randint(0, len(parts)), random.choice(BYTES))
    return quoted(b"".join(parts))


def _key(random: Random, depth: int) -> str:
    chance = random.random()
    if chance < 0.5:
        return _text(random)
    if chance < 0.9:
        return random.choice(("1", "2", "3", "5", "11", "30", "-1", "0", "1.5", "true", "1LL", "2^53"))
    key = _value(random, depth + 1)
    return "7" if key in NUMBERS else key  # a great number makes a great array


def _table(random: Random, depth: int) -> str:
    if random.random() < 0.7:
        return "{" + ", ".join(_value(random, depth + 1) for _ in range(random.randint(0, 4))) + "}"
    return f"{{[{_key(random, depth)} or 1] = {_value(random, depth + 1)}}}"


def _value(random: Random, depth: int = 0) -> str:
    """A value; the locals t1 and t2 are tables, and may occur more than once."""
    chance = random.random() if depth < 5 else random.uniform(0.53, 1)
    if chance < 0.4:
        return _table(random, depth)
    if chance < 0.5:
        return f"setmetatable({_table(random, depth)}, {{__serialize = '{random.choice(HINTS)}'}})"
    if chance < 0.53:
        return f"setmetatable({{1}}, {{__serialize = function() return {_value(random, depth + 1)} end}})"
    if chance < 0.75:
        return _text(random)
    if chance < 0.9:
        return random.choice(NUMBERS)
    if chance < 0.96:
        return random.choice(CDATA)
    return random.choice(("true", "false", "t1", "t2", "json.NULL", "t1", "t2", "print", "io.stdout"))


_FLAGS = (
    "sparse_convert",
    "deep_as_nil",
    "invalid_numbers",
    "load_metatables",
    "use_tostring",
    "invalid_as_nil",
)


def _options(random: Random) -> str:
    options = [
        f"encode_{random.choice(_FLAGS)} = {random.choice(('true', 'false'))}",
        f"encode_sparse_ratio = {random.choice(('0', '1', '2', '3', '-1'))}",
        f"encode_sparse_safe = {random.choice(('0', '1', '5', '10', '-1'))}",
        f"encode_max_depth = {random.choice(('0', '1', '2', '3', '128'))}",
        f"encode_number_precision = {random.choice(('0', '1', '3', '14', '17'))}",
    ]
    return "{" + ", ".join(random.sample(options, random.randint(1, 3))) + "}"


def _encoded(random: Random, module: str) -> str:
    if random.random() < 0.6:
        return f"return {module}.encode({_value(random)})"
    # Texts of functions and pointers have addresses.
    value = re.sub(
        r"\bprint\b|io\.stdout|ffi\.cast\('void \*', 16\)|ffi\.new\('int\[2\]'\)", "1", _value(random)
    )
    return f"local m = {module}.new() m.cfg{_options(random)} return m.encode({value})"


def _restored(random: Random, module: str) -> str:
    return f"return {module}.decode({module}.encode({_value(random)}))"


def _json_text(random: Random) -> str:
    start = random.choice(("", "[", "{", '"'))
    return start + "".join(_some(random, JSON_TOKENS, 1, random.choice((2, 5, 9))))


_STARTS = ("- ", "a: ", "? ", "", "b:", "-", ": ", "- - ", "- a: ", "'k': ", "[", "{", "  ")
_NODES = (
    *("x", "1", "[1, 2]", "{a: 1}", "'q'", "|", ">", "&a x", "*a", '"d"', "x y", "", "# c", "]", "}"),
    "[a: b]",
)


_ANCHORED = ("1", "x", "'q'", "[1]", "{a: 1}", "", "~", "!!str 1", "|\n  x\n", "[*a]", "\n  - 1", "\n  a: 1")
_ALIASES = ("- *a\n", "- [*a, *b]\n", "- *a : 1\n", "- a: *b\n", "- {*a : *b}\n", "- ? *a\n", "-\n  *b\n")


def _text_with_anchors(random: Random) -> str:
    """A sequence with anchors and aliases, mostly of each other."""
    lines = []
    for _ in range(random.randint(1, 5)):
        if random.random() < 0.5:
            lines.append(f"- &{random.choice('ab')} {random.choice(_ANCHORED)}\n")
        else:
            lines.append(random.choice(_ALIASES))
    return "".join(lines)


def _yaml_text(random: Random) -> str:
    if random.random() < 0.6:
        return "".join(_some(random, YAML_TOKENS, 1, random.choice((2, 4, 8, 16))))
    if random.random() < 0.2:
        return _text_with_anchors(random)
    lines = []
    for _ in range(random.randint(1, 6)):
        rest = _some(random, YAML_TOKENS, 0, 3) if random.random() < 0.5 else [random.choice(_NODES)]
        lines.append(" " * random.choice((0, 0, 1, 2, 2, 4)) + random.choice(_STARTS) + "".join(rest))
    return "\n".join(lines)


def _snippet(random: Random, module: str, text: str) -> str:
    chance = random.random()
    if chance < 0.45:
        made = _encoded(random, module)
    elif chance < 0.55:
        made = _restored(random, module)
    else:
        made = f"return {module}.decode({quoted(text.encode())})"
    return PREAMBLE + made


def json_snippet(random: Random) -> str:
    return _snippet(random, "json", _json_text(random))


def yaml_snippet(random: Random) -> str:
    return _snippet(random, "yaml", _yaml_text(random))
