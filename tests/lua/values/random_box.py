"""Random snippets of Lua with tuples, errors and MessagePack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

_NUMBERS = (
    *(str(number) for number in (0, 1, -1, 2, 5, 127, 128, 255, 256, 65535, 65536, -32, -33, -128, -129)),
    *(
        "1.5",
        "-0.25",
        "1/3",
        "1e15",
        "1e14",
        "-1e300",
        "2^53",
        "2^63",
        "-2^63",
        "1e-7",
        "1/0",
        "-1/0",
        "-0.0",
    ),
    *("1LL", "-1LL", "5ULL", "18446744073709551615ULL", "-9223372036854775807LL", "99999999999999", "1e14"),
)
_TEXTS = (
    "''",
    "'a'",
    "'abc'",
    r"'it\'s'",
    r"'\n'",
    r"'a\n b'",
    r"'\255'",
    "'é'",
    "'1'",
    "'null'",
    "('x'):rep(40)",
)
_SCALARS = (
    "box.NULL",
    "true",
    "false",
    "require('decimal').new('1.50')",
    "require('uuid').fromstr('9246f8f6-507c-4950-a92b-6a9a30004198')",
    "require('ffi').new('float', 0.5)",
    "require('ffi').new('double', 3)",
    "require('ffi').new('uint16_t', 7)",
    "require('ffi').new('bool', true)",
)
_KEYS = ("1", "2", "0", "-1", "1.5", "'a'", "'b'", "true", "5LL")
_PLACES = ("0", "1", "2", "3", "4", "-1", "-2", "-5", "9", "1.5", "'x'", "nil")


def value(random: Random, depth: int = 2) -> str:
    """A value; tables with keys have one, since the order of more depends on LuaJIT."""
    chance = random.random()
    if chance < 0.4:
        return random.choice(_NUMBERS)
    if chance < 0.6:
        return random.choice(_TEXTS)
    if chance < 0.75 or not depth:
        return random.choice(_SCALARS)
    if chance < 0.85:
        return f"{{[{random.choice(_KEYS)}] = {value(random, depth - 1)}}}"
    items = ", ".join(value(random, depth - 1) for _ in range(random.randint(0, 3)))
    return f"box.tuple.new{{{items}}}" if chance > 0.96 else f"{{{items}}}"


def _fields(random: Random, most: int = 5) -> str:
    return ", ".join(value(random) for _ in range(random.randint(0, most)))


def _tuple(random: Random) -> str:
    return f"local t = box.tuple.new{{{_fields(random)}}} "


def _place(random: Random) -> str:
    return random.choice(_PLACES)


def _path(random: Random) -> str:
    steps = (f"[{random.randint(0, 4)}]", ".a", "a", "['b']", "[*]", ".", "[1")
    return "'" + "".join(random.choice(steps) for _ in range(random.randint(1, 3))).replace("'", '"') + "'"


def _operation(random: Random) -> str:
    operator = random.choice("=+-&|^!#:=+?")
    field = _path(random) if random.random() < 0.2 else random.choice(_PLACES)
    argument = value(random) if operator in "=!" else random.choice((*_NUMBERS, *_SCALARS, "'a'"))
    if operator == ":":
        argument = f"{_place(random)}, {random.randint(-2, 4)}, {random.choice(_TEXTS)}"
    if operator == "#":
        argument = random.choice(("1", "2", "0", "-1", "9", "'x'"))
    return f"{{'{operator}', {field}, {argument}}}"


def _call(random: Random) -> str:
    method = random.choice(
        ("totable", "unpack", "slice", "transform", "find", "findall", "next", "tomap", "bsize")
    )
    arguments = [_place(random) for _ in range(random.randint(0, 2))]
    if method in ("find", "findall"):
        arguments = [random.choice(("0", "1", "2", "9", "-1", "'x'")), value(random, 0)][
            random.randint(0, 1) :
        ]
    if method == "transform":
        arguments = [_place(random), random.choice(("0", "1", "2", "7", "-1"))]
        arguments += [value(random) for _ in range(random.randint(0, 2))]
    if method == "tomap":
        arguments = []
    return f"t:{method}({', '.join(arguments)})"


def tuple_snippet(random: Random) -> str:
    """Make a tuple, and use it."""
    results = [
        _call(random) if random.random() < 0.5 else f"t[{_place(random)}]"
        for _ in range(random.randint(0, 2))
    ]
    if random.random() < 0.3:
        results.append(f"t[{_path(random)}]")
    return _tuple(random) + "return " + ", ".join(["t", "#t", *results]).replace("t[nil]", "t['']")


def update_snippet(random: Random) -> str:
    """Change a tuple by operations."""
    operations = ", ".join(_operation(random) for _ in range(random.randint(0, 3)))
    method = random.choice(("update", "update", "upsert"))
    return f"{_tuple(random)}return t:{method}{{{operations}}}"


def packing_snippet(random: Random) -> str:
    """Pack a value, and unpack it again."""
    options = ""
    if random.random() < 0.3:
        name = random.choice(
            ("deep_as_nil", "invalid_as_nil", "invalid_numbers", "load_metatables", "use_tostring")
        )
        flag, depth = random.choice(("true", "false")), random.randint(0, 3)
        options = f"m.cfg{{encode_{name} = {flag}, encode_max_depth = {depth}}} "
    packed = f"local p = m.encode({value(random, 4)})"
    return f"local m = require('msgpack').new() {options}{packed} return p, m.decode(p)"


def unpacking_snippet(random: Random) -> str:
    """Unpack bytes, most of which are no value."""
    heads = bytes.fromhex("007f808190919293a0a1a3c0c2c3c4cbcccdcecfd0d1d2d3d9dcff")
    packed = bytes(random.choice(heads) for _ in range(random.randint(1, 6))) + bytes(
        random.choices(range(4), k=9)
    )
    text = "".join(f"\\{byte:03d}" for byte in packed)
    return f"return require('msgpack').decode('{text}'{random.choice(('', '', ', 2', ', 16'))})"


def error_snippet(random: Random) -> str:
    """Make errors, set causes, and describe what is left."""
    lines = ["box.error.clear() local e = {}"]
    for place in range(1, 4):
        code = random.choice(
            (
                f"{{code = {place}, reason = 'r'}}",
                f"{random.choice((1, 3, 5, 7, 250))}, 'a', 'b', 3",
                "'T', 'x'",
            )
        )
        lines.append(f"e[{place}] = box.error.new({code})")
    for _ in range(random.randint(0, 4)):
        one, other = random.randint(1, 3), random.randint(1, 3)
        cause = f"e[{one}]:set_prev(e[{other}])"
        action = random.choice(
            (
                *(cause, cause, cause, f"e[{one}]:set_prev(nil)", f"box.error.set(e[{one}])"),
                *(f"box.error(e[{one}])", f"e[{one}]:raise()", "box.error.clear()", "box.error()"),
            )
        )
        lines.append(f"pcall(function() {action} end)")
    shown = ", ".join(
        f"e[{place}], e[{place}].prev, e[{place}].code, e[{place}].type" for place in range(1, 4)
    )
    lines.append(f"return {shown}, box.error.last()")
    return " ".join(lines)


SNIPPETS: Mapping[str, Callable[[Random], str]] = {
    "error": error_snippet,
    "packing": packing_snippet,
    "tuple": tuple_snippet,
    "unpacking": unpacking_snippet,
    "update": update_snippet,
}
