"""Random pipelines of the module fun."""

from __future__ import annotations

from random import Random

_SOURCES = (
    "{1, 2, 3, 4}",
    "{3, 1, 2, 3}",
    "{}",
    "{'b', 'a', 'c'}",
    "'hello'",
    "''",
    "{a = 1}",
    "{1, 'x', true}",
    "fun.range(5)",
    "fun.range(2, 9, 3)",
    "fun.range(5, 1)",
    "fun.range(0)",
    "fun.range(1, 2, 0.25)",
    "fun.zip({1, 2, 3}, {4, 5, 6})",
    "fun.zip('ab', fun.range(3), {7, 8, 9})",
    "fun.enumerate({'x', 'y'})",
    "fun.tabulate(function(x) return x * x end):take(4)",
    "fun.duplicate(1, 2):take(3)",
    "fun.chain({1}, 'ab', fun.range(2))",
    "fun.wrap(ipairs({5, 6}))",
    "fun.iter(pairs({7, 8}))",
    "fun.zeros():take(2)",
    "nil",
    "7",
)
_TESTS = (
    "function(x) return x == 2 end",
    "function(x) return type(x) == 'number' and x > 1 end",
    "function(...) return select('#', ...) > 1 end",
    "function() return true end",
    "function() return false end",
    "function(x, y) return x == 'a' or y == 2 end",
)
_MAPS = (
    "function(x) return x end",
    "function(...) return ..., 'z' end",
    "function() end",
    "function(x) return tostring(x), 1 end",
    "function(x) return x + 1 end",
    "fun.op.lnot",
    "function(x, y) return y, x end",
)
_PAIRS = (
    "math.max",
    "function(a, b) return a end",
    "function(a, b) return b end",
    "fun.op.add",
    "fun.op.concat",
)
_COUNTS = ("0", "1", "2", "3", "10", "1.5", "-1", "'x'", "nil", "{}")


def _step(random: Random) -> str:
    """One method that makes an iterator."""
    count, test = random.choice(_COUNTS), random.choice(_TESTS)
    return random.choice(
        (
            f":take_n({count})",
            f":drop_n({count})",
            f":take({random.choice((count, test))})",
            f":drop({random.choice((count, test))})",
            f":take_while({test})",
            f":drop_while({test})",
            f":filter({test})",
            f":grep({random.choice((test, repr('a'), repr('^[a-c]$')))})",
            f":remove_if({test})",
            f":map({random.choice(_MAPS)})",
            ":enumerate()",
            ":intersperse('s')",
            f":zip({random.choice(_SOURCES)})",
            f":chain({random.choice(_SOURCES)})",
            ":cycle():take_n(7)",
            ":tail()",
            f":indexes({random.choice(('1', '2', repr('a')))})",
        )
    )


def _end(random: Random) -> str:
    """A method that makes values."""
    return random.choice(
        (
            ":totable()",
            ":totable()",
            ":map(function(...) return {...} end):totable()",
            ":map(function(...) return {...} end):totable()",
            ":tomap()",
            ":length()",
            ":head()",
            f":nth({random.choice(_COUNTS)})",
            ":is_null()",
            ":sum()",
            ":product()",
            ":min()",
            ":max()",
            f":min_by({random.choice(_PAIRS)})",
            f":max_by({random.choice(_PAIRS)})",
            f":all({random.choice(_TESTS)})",
            f":any({random.choice(_TESTS)})",
            f":foldl({random.choice(_PAIRS)}, {random.choice(('0', repr('x'), 'nil'))})",
            f":index({random.choice(('1', '2', repr('a')))})",
            f":is_prefix_of({random.choice(_SOURCES)})",
            ":unwrap()",
        )
    )


_WITH_FUNCTION = (
    *("all", "any", "drop", "drop_while", "each", "filter", "grep", "map", "max_by", "min_by", "partition"),
    *("reduce", "remove_if", "span", "split", "take", "take_while"),
)
_OTHERS = (
    *(
        "car",
        "cdr",
        "chain",
        "cycle",
        "drop_n",
        "duplicate",
        "elem_index",
        "elem_indexes",
        "enumerate",
        "head",
    ),
    *(
        "index",
        "indexes",
        "intersperse",
        "is_null",
        "is_prefix_of",
        "iter",
        "length",
        "max",
        "min",
        "nth",
        "ones",
    ),
    *(
        "product",
        "range",
        "replicate",
        "sum",
        "tabulate",
        "tail",
        "take_n",
        "tomap",
        "totable",
        "zeros",
        "zip",
    ),
)


def _direct_call(random: Random) -> str:
    """A public function with more or fewer arguments than it takes, few of the right type."""
    name = random.choice(_WITH_FUNCTION + _OTHERS)
    arguments = [random.choice(_SOURCES + _COUNTS) for _ in range(random.randint(0, 3))]
    if name in _WITH_FUNCTION:
        arguments.insert(0, random.choice(_TESTS + _MAPS + _COUNTS))
    call = f"fun.{name}({', '.join(arguments)})"
    if random.random() < 0.5:
        return f"local fun = require('fun') return {call}"
    return (
        f"local fun = require('fun') local a = {call} "
        "return type(a) == 'table' and type(a.gen) == 'function' and a:take_n(9):totable()"
    )


def fun_snippet(random: Random) -> str:
    if random.random() < 0.3:
        return _direct_call(random)
    source = random.choice(_SOURCES)
    steps = "".join(_step(random) for _ in range(random.randint(0, 3)))
    kind = random.random()
    if kind < 0.8:
        return f"local fun = require('fun') return fun.iter({source}){steps}{_end(random)}"
    parts = random.choice(("span", "split", "split_at", "partition"))
    argument = random.choice(_TESTS if parts == "partition" else (*_TESTS, *_COUNTS))
    return (
        f"local fun = require('fun') local a, b = fun.{parts}({argument}, fun.iter({source}){steps}) "
        "return a:totable(), b:totable()"
    )
