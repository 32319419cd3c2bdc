"""Random tests with the module tap."""

from __future__ import annotations

from random import Random

from tests.lua.modules.language.tap_output import WITH_OUTPUT
from tests.lua.modules.random_snippets.values import quoted

_VALUES = (
    "nil",
    "null",
    "1",
    "2",
    "1LL",
    "'1'",
    "0 / 0",
    "true",
    "'text'",
    "{}",
    "{1, 2}",
    "{1, {2}}",
    "{1, {3}}",
    "{a = 1, b = {}}",
    "{a = 1, b = {c = null}}",
    "{a = 1}",
    "print",
)


def _assertion(random: Random, depth: int) -> str:
    first, second = random.choice(_VALUES), random.choice(_VALUES)
    message = random.choice(("'message'", "'message'", "'%d'", "nil", "5"))
    kind = random.choice(("string", "number", "table", "boolean", "function", "nil"))
    if random.random() < 0.15 and depth:
        return f"t:test('inner', function(t) {_statements(random, depth - 1)} end)"
    return random.choice(
        (
            f"t:ok({first}, {message})",
            f"t:fail({message})",
            "t:skip('skipped')",
            f"t:diag({quoted(b'note %%')})",
            f"t:is({first}, {second}, {message})",
            f"t:isnt({first}, {second}, {message})",
            f"t:is_deeply({first}, {second}, {message})",
            f"t:is_deeply({{x = {first}}}, {{x = {second}}}, {message})",
            f"t:is_deeply({{{first}, {second}}}, {{{first}, {random.choice(_VALUES)}}}, {message})",
            f"t:like({first}, 't', {message})",
            f"t:unlike({first}, 'u', {message})",
            f"t:is{kind}({first}, {message})",
            f"t:iscdata({first}, 'int64_t', {message})",
            f"t.strict = {random.choice(('true', 'false'))}",
        )
    )


def _statements(random: Random, depth: int) -> str:
    count = random.randint(0, 5)
    plan = f"t:plan({count if random.random() < 0.7 else count + 1}) " if random.random() < 0.9 else ""
    return plan + " ".join(_assertion(random, depth) for _ in range(count))


def tap_snippet(random: Random) -> str:
    body = f"local null = require('ffi').cast('void *', 0) {_statements(random, 2)} return t:check()"
    return WITH_OUTPUT % body
