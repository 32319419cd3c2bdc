"""Random snippets of Lua that calculate with decimals."""

from __future__ import annotations

from random import Random

FUNCTIONS = ("abs", "exp", "ln", "log10", "sqrt", "precision", "scale", "trim", "is_decimal", "new")
OPERATORS = ("+", "-", "*", "/", "%", "^", "==", "<", "<=", ">", ">=", "~=")
JUNK = (
    *(
        "nil",
        "true",
        "{}",
        "require('ffi').new('void *')",
        "'x'",
        "''",
        "'1e'",
        "'.'",
        "'-'",
        "'+ 1'",
        "'0x1'",
    ),
    *("'nan'", "'inf'", "1/0", "0/0", "print", "'1\\0x'", "' 1'", "'1 '", "'1__'", "ffi.new('void *')"),
    "ffi.new('bool', true)",
)
EXPONENTS = (-40, -38, -37, -10, -2, 0, 1, 5, 20, 36, 37, 38, 40, 2**40)
NUMBERS = (0, 1, -1, 2, 0.1, 1.5, -2.25, 1e15, 1e16, 1e37, 1e38, 1e-7)
CDATA = ("1LL", "-1LL", "18446744073709551615ULL", "ffi.new('float', 0.1)", "ffi.new('char', 7)")


def number_text(random: Random) -> str:
    """A number as text, most of them near the limits of a decimal."""
    size = random.choice((1, 1, 2, 3, 5, 10, 19, 37, 38, 39))
    digits = "".join(random.choices(random.choice(("0123456789", "09", "0123456789", "05")), k=size))
    if random.random() < 0.6:
        point = random.randint(0, size)
        digits = digits[:point] + "." + digits[point:]
    text = random.choice(("", "", "-", "+")) + digits
    if random.random() < 0.25:
        text += f"{random.choice('eE')}{random.choice(EXPONENTS)}"
    return text


def operand(random: Random) -> str:
    """An expression for a decimal, or for what becomes one."""
    chance = random.random()
    if chance < 0.06:
        return random.choice(JUNK)
    if chance < 0.16:
        return repr(random.choice((*NUMBERS, random.random())))
    if chance < 0.2:
        return random.choice(CDATA)
    if chance < 0.3:
        return f"'{number_text(random)}'"
    if chance < 0.4:
        return f"decimal.new('{random.randint(-30, 30)}')"
    if chance < 0.48:
        return f"decimal.new('{random.choice(('', '-'))}{random.randint(0, 200) / 10}')"
    return f"decimal.new('{number_text(random)}')"


def decimal_snippet(random: Random) -> str:
    """A chunk that returns the result of one or two operations."""
    chance = random.random()
    if chance < 0.3:
        result = f"decimal.{random.choice(FUNCTIONS)}({operand(random)})"
    elif chance < 0.45:
        scale = random.choice((0, 1, 2, 5, 37, 38, 39, -1, 1.5, "'2'", "nil", "{}"))
        result = f"decimal.{random.choice(('round', 'rescale'))}({operand(random)}, {scale})"
    elif chance < 0.5:
        result = f"-({operand(random)} + decimal.new(0))"
    elif chance < 0.55:
        exact = f"decimal.new('{number_text(random)}')"
        result = f"{exact}.digits, {exact}.exponent, {exact}.bits"
    else:
        result = f"(decimal.new('{number_text(random)}')) {random.choice(OPERATORS)} ({operand(random)})"
        if random.random() < 0.3:
            result = f"({operand(random)}) {random.choice(OPERATORS)} (decimal.new('{number_text(random)}'))"
        if random.random() < 0.2:
            result = f"({result}) {random.choice(OPERATORS)} ({operand(random)})"
    return f"local decimal, ffi = require('decimal'), require('ffi')\nreturn {result}"
