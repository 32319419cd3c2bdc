"""Random statements for a console: values of all kinds, commands, errors, and texts that are no Lua.

No value fails to be shown: Tarantool 2.6 writes other values wrongly after it has failed to write one as Lua.
"""

from __future__ import annotations

from random import Random

from tests.lua.modules.random_snippets.values import ascii_text, byte_text, quoted, wide_text

_SCALARS = (
    *(
        "nil",
        "true",
        "false",
        "0",
        "-1",
        "1.5",
        "2^53",
        "1e100",
        "0/0",
        "-(0/0)",
        "1/0",
        "-1/0",
        "0.1",
        "1e15",
    ),
    *("5LL", "-3LL", "7ULL", "18446744073709551615ULL", "null", "require('decimal').new('1.50')"),
    *("require('ffi').new('float', 1.5)", "require('ffi').new('bool', true)", "require('ffi').typeof('int')"),
    "require('uuid').fromstr('c8f0fa1f-da29-438c-a040-393f1126ad39')",
)

_HINTS = ("'seq'", "'map'", "'sequence'", "'mapping'", "function() return 'text' end")

_COMMANDS = (
    *(
        "\\help",
        "\\h",
        "\\",
        "\\set",
        "\\s",
        "\\set output",
        "\\set output yaml",
        "\\set output lua",
        "\\s o lua",
    ),
    *(
        "\\set output lua,block",
        "\\set output lua,line",
        "\\set output lua,no",
        "\\set output json",
        "\\set out lua",
    ),
    *("\\set output yaml,block", "\\set output lua,", "\\set output ,lua", "\\set output lua,block,line"),
    *(
        "\\set  output   lua  ",
        "\\set output lua block",
        "\\set language",
        "\\set language lua",
        "\\set l",
        "\\set lang",
    ),
    *(
        "\\set language pascal",
        "\\set delimiter ;",
        "\\set d",
        "\\set delim",
        "\\set what",
        "\\set x y",
        "\\nothing",
    ),
    *(
        "\\helpful",
        "\\ help",
        "\\\thelp",
        "\\q",
        "\\quit",
        "\\quit now",
        "\\qu",
        "\\\\help",
        "\\HELP",
        "\\?",
        "\\set out",
    ),
)

_STATEMENTS = (
    *(
        "",
        " ",
        "\t",
        ";",
        "x =",
        "x = 1",
        "local x = 1",
        "return",
        "return 1, nil, 3",
        "return nil",
        "for",
        "end",
    ),
    *(
        "1;",
        "1; 2",
        "1,",
        "f(",
        "{",
        "}",
        "--",
        "-- 1",
        "--[[ x",
        "[[x",
        '"x',
        "'x",
        "=1",
        "?",
        "1 +",
        "not",
        "1..2",
    ),
    *("error()", "error('x')", "error('x', 0)", "error('x', 2)", "error(5)", "error(true)", "error({a = 1})"),
    *("error(nil)", "error({})", "local x = nil; x.y = 1", "nothing.x", "nil .. 1", "do return 5 end", "..."),
    *(
        "assert(false)",
        "assert(nil, 'x')",
        "pcall(error, 'x')",
        "function x() end",
        "while",
        "if x then",
        "a b",
    ),
    *(
        "select('#', ...)",
        "return return",
        "goto x",
        "::x::",
        "break",
        "'\\q'",
        "1e",
        "0x",
        "{}.x",
        "('x'):rep(3)",
    ),
)


def _text(random: Random) -> str:
    kind = random.choice((ascii_text, byte_text, wide_text))
    return kind(random)


_KEYS = (
    *("a", "_b", "goto", "['end']", "['a b']", "['1x']", "['']"),
    *("[0]", "[-1]", "[2.5]", "[true]", "[null]", "[{}]"),
)


def _key(random: Random) -> str:
    return random.choice((*_KEYS, f"[{_text(random)}]"))


def _value(random: Random, depth: int) -> str:
    kind = random.random()
    if kind < 0.4 or not depth:
        return random.choice(_SCALARS)
    if kind < 0.6:
        return _text(random)
    if kind < 0.7:
        return random.choice(("shared", "circle"))
    if kind < 0.8:  # one key: the order of keys depends on the implementation
        return f"{{{_key(random)} = {_value(random, depth - 1)}}}"
    values = ", ".join(_value(random, depth - 1) for _ in range(random.randint(0, 4)))
    if random.random() < 0.2:
        return f"setmetatable({{{values}}}, {{__serialize = {random.choice(_HINTS)}}})"
    return f"{{{values}}}"


def statement(random: Random) -> str:
    """A statement."""
    kind = random.random()
    if kind < 0.2:
        return random.choice(_COMMANDS)
    if kind < 0.4:
        return random.choice(_STATEMENTS)
    values = ", ".join(_value(random, 3) for _ in range(random.randint(1, 3)))
    return f"error({values})" if kind < 0.45 else f"return {values}"


def console_snippet(random: Random) -> str:
    """A few statements, each after the other, and what the console shows."""
    prelude = (
        "local console = require('console') local circle = {} circle[1] = circle "
        "_G.null, _G.shared, _G.circle = require('json').NULL, {1}, circle "
        "console.eval('\\\\set output yaml') "
    )
    calls = (f"console.eval({quoted(statement(random).encode())})" for _ in range(random.randint(1, 3)))
    return f"{prelude} return {', '.join(calls)}"
