"""Random snippets of Lua that encode and decode with json and yaml.

Run `python -m tests.lua.modules.random_snippets COUNT SEED` to compare many with a real Tarantool.
"""

from __future__ import annotations

import random
import re
import shutil
import sys
from collections.abc import Callable, Iterator

from tests.lua.snippets import OurLua, TarantoolLua

PREAMBLE = "local json, yaml, ffi = require('json'), require('yaml'), require('ffi') "

PIECES = (
    "a b c x1 1 2 0 -1 +1 1.5 1e5 .5 5. 0x1F 017 inf nan -inf Infinity 100000000000000 18446744073709551616 true false "
    "yes no null ~ on nil Null 1LL - -- --- ... ? ?a : :a a: a:b , [ ] { } # #c & * ! | > ' \" % @ ` \\ = << / . _ $ ( )"
).split() + [
    " ",
    "  ",
    "\n",
    "\n\n",
    "\n ",
    " \n",
    "\t",
    "\r",
    "\r\n",
    ": ",
    "- ",
    " #",
    "é",
    "日本",
    "😀",
    "''",
    '"',
    "\u2028",
]
RARE = [
    "\0",
    "\x01",
    "\x1b",
    "\x7f",
    "\x85",
    "\ufeff",
    "\ufffe",
    "\u0378",
    "\U0001fffe",
    "word " * 20,
    "long" * 50,
]
BYTES = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"]

NUMBERS = (
    "0 1 -1 2 10 127 255 65536 1.5 -0.25 1/3 -1/3 1e15 1e14 1e300 -1e300 2^53 2^53+2 2^63 2^64 -2^63 -2^64 1e-7 5e-324 "
    "123456789.125 1LL -1LL 5ULL 18446744073709551615ULL -9223372036854775807LL 1/0 -1/0 -0.0 1e20 99999999999999 0.1+0.2"
).split()
CDATA = [
    f"ffi.new('{kind}', {value})"
    for kind in (
        "int8_t",
        "uint16_t",
        "int",
        "int64_t",
        "uint64_t",
        "float",
        "double",
        "bool",
        "char",
        "long long",
    )
    for value in ("0", "1", "65", "1.5", "-3")
] + [
    "json.NULL",
    "ffi.new('void *', nil)",
    "ffi.cast('void *', 16)",
    "ffi.new('int[2]')",
    "ffi.typeof('int')",
]
HINTS = ["seq", "map", "sequence", "mapping", "array", "bad"]

JSON_TOKENS = (
    '[ ] { } , : 1 -1 0 01 1.5 1e5 1e -0 0.0 1. .5 - inf -inf nan 0x1 true false null tru nulls "a" "b" "" "a\\n" "\\u00e9" '
    '"\\ud83d\\ude00" "\\ud83d" "\\q" "\\u12" "a 100000000000000 9223372036854775807 18446744073709551616 1e400 x'
).split() + [" ", "\n", '"a\nb"', '"a\tb"', "\0", "é"]

YAML_TOKENS = (
    "a b c 1 1.5 true null ~ - ? : , [ ] { } # & &a &b * *a *b ! !a !!str !!int !!float !!bool !!null !!binary !!map !<x> "
    '| > |- >+ |2 |+ \' " \'q\' "q" \'it\'\'s\' "\\n" "\\x41" "\\q" --- ... % %YAML %TAG 0x1F 100000000000000 1e3 a:b <<'
).split() + [
    " ",
    "  ",
    "\n",
    "\n  ",
    "\n ",
    "\n    ",
    ": ",
    "- ",
    "? ",
    " #c\n",
    "\t",
    "\n\n",
    "- ",
    ": ",
    "\n",
    "\n  ",
    ", ",
]
YAML_TOKENS += [
    "\r\n",
    "é",
    "\x85",
    "\u2028",
    "%YAML 1.1\n---\n",
    "%TAG ! x\n--- ",
    "\n---\n",
    "\n...\n",
    "!!binary AQ==",
    "\\\n",
]


def literal(text: bytes) -> str:
    """A string literal of Lua."""
    return (
        '"'
        + "".join(
            f"\\{code:03d}" if code < 32 or code > 126 or code in b'"\\' else chr(code) for code in text
        )
        + '"'
    )


class Snippets:
    """Snippets drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._kinds: list[Callable[[], str]] = [
            self._encoded, self._encoded, self._encoded_with_options, self._json_decoded, self._yaml_decoded,
            self._yaml_decoded, self._yaml_indented, self._restored,
        ]  # fmt: skip

    def __iter__(self) -> Iterator[str]:
        while True:
            yield PREAMBLE + self._random.choice(self._kinds)()

    def _some(self, items: list[str] | tuple[str, ...], least: int, most: int) -> list[str]:
        return [self._random.choice(items) for _ in range(self._random.randint(least, most))]

    def _text(self) -> bytes:
        pick = self._random.random
        parts = [
            each.encode("utf-8", "surrogatepass")
            for each in self._some(PIECES, 0, self._random.choice((1, 2, 4, 30)))
        ]
        if pick() < 0.1:
            parts.insert(self._random.randint(0, len(parts)), self._random.choice(RARE).encode())
        if pick() < 0.04:
            parts.insert(self._random.randint(0, len(parts)), self._random.choice(BYTES))
        return b"".join(parts)

    def _key(self, depth: int) -> str:
        pick = self._random.random()
        if pick < 0.5:
            return literal(self._text())
        if pick < 0.9:
            return self._random.choice(
                ("1", "2", "3", "5", "11", "30", "-1", "0", "1.5", "true", "1LL", "2^53")
            )
        key = self._value(depth + 1)
        return "7" if key in NUMBERS else key  # a great number makes a great array

    def _value(self, depth: int = 0) -> str:
        pick = self._random.random()
        if depth < 5 and pick < 0.3:
            return "{" + ", ".join(self._value(depth + 1) for _ in range(self._random.randint(0, 4))) + "}"
        if depth < 5 and pick < 0.4:
            return f"{{[{self._key(depth)} or 1] = {self._value(depth + 1)}}}"
        if depth < 5 and pick < 0.5:
            hint = self._random.choice(HINTS)
            return f"setmetatable({self._value(5)} and {self._table(depth)}, {{__serialize = '{hint}'}})"
        if depth < 5 and pick < 0.53:
            return f"setmetatable({{1}}, {{__serialize = function() return {self._value(depth + 1)} end}})"
        if pick < 0.75:
            return literal(self._text())
        if pick < 0.9:
            return self._random.choice(NUMBERS)
        if pick < 0.96:
            return self._random.choice(CDATA)
        if pick < 0.97:
            return self._random.choice(("print", "t1", "io.stdout"))
        return self._random.choice(("true", "false", "t1", "t2", "json.NULL", "t1", "t2"))

    def _table(self, depth: int) -> str:
        if self._random.random() < 0.5:
            return "{" + ", ".join(self._value(depth + 1) for _ in range(self._random.randint(0, 4))) + "}"
        return f"{{[{self._key(depth)} or 1] = {self._value(depth + 1)}}}"

    def _encoded(self) -> str:
        module = self._random.choice(("json", "yaml", "yaml"))
        return f"local t1, t2 = {{}}, {{a = 1}} return {module}.encode({self._value()})"

    def _options(self) -> str:
        choose = self._random.choice
        flags = (
            "sparse_convert",
            "deep_as_nil",
            "invalid_numbers",
            "load_metatables",
            "use_tostring",
            "invalid_as_nil",
        )
        options = [f"encode_{choose(flags)} = {choose(('true', 'false'))}"]
        options.append(f"encode_sparse_ratio = {choose(('0', '1', '2', '3', '-1'))}")
        options.append(f"encode_sparse_safe = {choose(('0', '1', '5', '10', '-1'))}")
        options.append(f"encode_max_depth = {choose(('0', '1', '2', '3', '128'))}")
        options.append(f"encode_number_precision = {choose(('0', '1', '3', '14', '17'))}")
        self._random.shuffle(options)
        return "{" + ", ".join(options[: self._random.randint(1, 3)]) + "}"

    def _encoded_with_options(self) -> str:
        value = re.sub(
            r"\bprint\b|io\.stdout|ffi\.cast\('void \*', 16\)|ffi\.new\('int\[2\]'\)", "1", self._value()
        )
        module = self._random.choice(("json", "yaml"))
        return f"local t1, t2 = {{}}, {{a = 1}} local m = {module}.new() m.cfg{self._options()} return m.encode({value})"

    def _json_decoded(self) -> str:
        text = "".join(self._some(JSON_TOKENS, 1, self._random.choice((2, 5, 9)))).encode()
        if self._random.random() < 0.5:
            text = (self._random.choice('[{"') + text.decode()).encode()
        return f"return json.decode({literal(text)})"

    def _yaml_decoded(self) -> str:
        text = "".join(self._some(YAML_TOKENS, 1, self._random.choice((2, 4, 8, 16))))
        return f"return yaml.decode({literal(text.encode())})"

    def _yaml_indented(self) -> str:
        lines = []
        for _ in range(self._random.randint(1, 6)):
            start = self._random.choice(
                ("- ", "a: ", "? ", "", "b:", "-", ": ", "- - ", "- a: ", "'k': ", "[", "{", "  ")
            )
            rest = (
                "".join(self._some(YAML_TOKENS, 0, 3))
                if self._random.random() < 0.5
                else self._random.choice(
                    (
                        "x",
                        "1",
                        "[1, 2]",
                        "{a: 1}",
                        "'q'",
                        "|",
                        ">",
                        "&a x",
                        "*a",
                        '"d"',
                        "x y",
                        "",
                        "# c",
                        "]",
                        "}",
                        "[a: b]",
                    )
                )
            )
            lines.append(" " * self._random.choice((0, 0, 1, 2, 2, 4)) + start + rest)
        return f"return yaml.decode({literal(chr(10).join(lines).encode())})"

    def _restored(self) -> str:
        module = self._random.choice(("json", "yaml"))
        return f"local t1, t2 = {{}}, {{a = 1}} return {module}.decode({module}.encode({self._value()}))"


BOX_ERROR = re.compile(r"cdata:ctype<const struct error(?: &)?>:(.*)", re.DOTALL)


def _plain(described: str) -> str:
    """A description with box errors as texts; keys that are tables have no order."""
    found = BOX_ERROR.search(described)
    if found:
        text = re.sub(r'[\x00-\x1f"\\]', lambda c: f"\\{ord(c.group()):03d}", found.group(1))
        text = re.sub(
            r"[^\x00-\x7f]", lambda c: "".join(f"\\{code:03d}" for code in c.group().encode()), text
        )
        described = described[: found.start()] + '"' + text + '"'
    if re.search(r"\[(map:|seq:)?\{", described):
        described = "".join(sorted(described))
    return re.sub(r"0x[0-9a-f]{8,}", "ADDRESS", described)


def differences(count: int, seed: int, ours: OurLua, real: TarantoolLua) -> Iterator[tuple[str, str, str]]:
    """Snippets that both run differently, with their descriptions."""
    for snippet, _ in zip(Snippets(seed), range(count), strict=False):
        mine, judged = ours.run(snippet), real.run(snippet)
        if mine != judged and _plain(mine) != _plain(judged):
            yield snippet, mine, judged


def main() -> int:
    count, seed = (int(each) for each in sys.argv[1:3])
    program = shutil.which("tarantool")
    if program is None:
        raise SystemExit("no executable `tarantool` is installed")
    found = 0
    with TarantoolLua(program) as real:
        for snippet, mine, judged in differences(count, seed, OurLua(), real):
            found += 1
            print(snippet[len(PREAMBLE) :], "\n  ours", mine, "\n  real", judged)
    print(f"{count} snippets, {found} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
