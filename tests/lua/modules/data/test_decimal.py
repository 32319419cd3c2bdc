"""The module decimal: examples that a real Tarantool agrees with."""

from __future__ import annotations

import pytest

from tests.lua.modules.alike import described
from tests.lua.snippets import OurLua, TarantoolLua

PREAMBLE = "local decimal, ffi = require('decimal'), require('ffi') local new = decimal.new "


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("new(1)", "ok cdata:ctype<struct NUMBER>:1"),
        ("new('1.50')", "ok cdata:ctype<struct NUMBER>:1.50"),
        ("new(-0.1)", "ok cdata:ctype<struct NUMBER>:-0.1"),
        ("new('1e10')", "ok cdata:ctype<struct NUMBER>:10000000000"),
        ("new('1e-5')", "ok cdata:ctype<struct NUMBER>:0.00001"),
        ("new('-.5')", "ok cdata:ctype<struct NUMBER>:-0.5"),
        ("new('5.')", "ok cdata:ctype<struct NUMBER>:5"),
        ("new(1LL)", "ok cdata:ctype<struct NUMBER>:1"),
        ("new(18446744073709551615ULL)", "ok cdata:ctype<struct NUMBER>:18446744073709551615"),
        ("new(ffi.new('float', 0.5))", "ok cdata:ctype<struct NUMBER>:0.5"),
        ("new(new('7'))", "ok cdata:ctype<struct NUMBER>:7"),
        ("new(0.1 + 0.2)", "ok cdata:ctype<struct NUMBER>:0.3"),
        (
            "new('12345678901234567890123456789012345678')",
            "ok cdata:ctype<struct NUMBER>:12345678901234567890123456789012345678",
        ),
        (
            "new('0.00000000000000000000000000000000000001')",
            "ok cdata:ctype<struct NUMBER>:0.00000000000000000000000000000000000001",
        ),
        ("type(new(1)), tostring(ffi.typeof(new(1)))", 'ok "cdata" "ctype<struct NUMBER>"'),
    ],
)
def test_a_decimal_is_made_of_numbers_and_texts(
    lua: OurLua | TarantoolLua, expression: str, result: str
) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("new()", 'error "usage: decimal.new(value)"'),
        ("new(nil)", 'error "expected decimal, number or string as 1 argument"'),
        ("new('x')", 'error "incorrect value to convert to decimal as 1 argument"'),
        ("new('')", 'error "incorrect value to convert to decimal as 1 argument"'),
        ("new({})", 'error "expected decimal, number or string as 1 argument"'),
        ("new(true)", 'error "expected decimal, number or string as 1 argument"'),
        ("new(1/0)", 'error "incorrect value to convert to decimal as 1 argument"'),
        ("new(0/0)", 'error "incorrect value to convert to decimal as 1 argument"'),
        (
            "new('123456789012345678901234567890123456789')",
            'error "incorrect value to convert to decimal as 1 argument"',
        ),
        ("new('1e38')", 'error "incorrect value to convert to decimal as 1 argument"'),
        ("new(ffi.new('bool', true))", 'error "expected decimal, number or string as 1 argument"'),
        ("new('1 ')", 'error "incorrect value to convert to decimal as 1 argument"'),
    ],
)
def test_what_is_no_decimal_is_an_error(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("new('0.1') + '0.2'", "ok cdata:ctype<struct NUMBER>:0.3"),
        ("1 - new('0.9')", "ok cdata:ctype<struct NUMBER>:0.1"),
        ("new(2) * 3LL", "ok cdata:ctype<struct NUMBER>:6"),
        ("new(1) / 3", "ok cdata:ctype<struct NUMBER>:0.33333333333333333333333333333333333333"),
        ("new(7) % 3, new(-7) % 3", "ok cdata:ctype<struct NUMBER>:1 cdata:ctype<struct NUMBER>:-1"),
        (
            "new(2) ^ 10, new(2) ^ '0.5'",
            (
                "ok cdata:ctype<struct NUMBER>:1024 cdata:ctype<struct "
                "NUMBER>:1.4142135623730950488016887242096980786"
            ),
        ),
        ("-new('1.0')", "ok cdata:ctype<struct NUMBER>:-1.0"),
        ("new('1.20') + new('1.3')", "ok cdata:ctype<struct NUMBER>:2.50"),
        ("new('1e37') * 1", "ok cdata:ctype<struct NUMBER>:10000000000000000000000000000000000000"),
    ],
)
def test_arithmetic(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("new(1) / 0", 'error "snippet:1: decimal operation failed"'),
        ("new('1e37') * 100", 'error "snippet:1: decimal operation failed"'),
        ("new(0) ^ -1", 'error "snippet:1: decimal operation failed"'),
        ("new(-8) ^ '0.5'", 'error "snippet:1: decimal operation failed"'),
        ("new(1) + nil", 'error "snippet:1: expected decimal, number or string as 2 argument"'),
        ("new(1) + {}", 'error "snippet:1: expected decimal, number or string as 2 argument"'),
        ("{} + new(1)", 'error "snippet:1: expected decimal, number or string as 1 argument"'),
        ("new(1) + 'x'", 'error "snippet:1: incorrect value to convert to decimal as 2 argument"'),
        ("new(7) % 0", 'error "snippet:1: decimal operation failed"'),
        ("-new", "error \"snippet:1: attempt to perform arithmetic on local 'new' (a function value)\""),
    ],
)
def test_arithmetic_that_fails_is_an_error(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("new('1.0') == new(1), new(1) == 1, new(1) == '1'", "ok true true true"),
        ("new(1) < 2, 2 <= new(2), new(3) > '2.5'", "ok true true true"),
        ("new(1) == nil, new(1) ~= nil", "ok false true"),
        ("new(1) == ffi.cast('void *', 0)", "ok false"),
        ("new(1) < nil", 'error "snippet:1: attempt to compare decimal with nil"'),
        ("new(1) < {}", 'error "snippet:1: expected decimal, number or string as 2 argument"'),
        ("new(1) == {}", 'error "snippet:1: expected decimal, number or string as 2 argument"'),
    ],
)
def test_comparisons(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            "decimal.abs(-1), decimal.abs('2.50')",
            "ok cdata:ctype<struct NUMBER>:1 cdata:ctype<struct NUMBER>:2.50",
        ),
        ("decimal.exp(1)", "ok cdata:ctype<struct NUMBER>:2.7182818284590452353602874713526624978"),
        ("decimal.ln(10)", "ok cdata:ctype<struct NUMBER>:2.3025850929940456840179914546843642076"),
        ("decimal.log10(1000)", "ok cdata:ctype<struct NUMBER>:3"),
        ("decimal.sqrt(2)", "ok cdata:ctype<struct NUMBER>:1.4142135623730950488016887242096980786"),
        (
            "decimal.precision('123.450'), decimal.precision(0)",
            'error "snippet:1: expected cdata as 1 argument"',
        ),
        ("decimal.scale(new('123.450')), decimal.scale(new(1))", "ok 3 0"),
        ("decimal.precision(new('123.450')), decimal.precision(new('0.001'))", "ok 6 3"),
        (
            "decimal.round(new('2.5'), 0), decimal.round(new('-2.55'), 1), decimal.round(new(1), 5)",
            ("ok cdata:ctype<struct NUMBER>:3 cdata:ctype<struct NUMBER>:-2.6 cdata:ctype<struct NUMBER>:1"),
        ),
        (
            "decimal.rescale(new('1.5'), 3), decimal.rescale(new('1.55'), 1)",
            "ok cdata:ctype<struct NUMBER>:1.500 cdata:ctype<struct NUMBER>:1.6",
        ),
        (
            "decimal.trim(new('1.500')), decimal.trim(new('100'))",
            "ok cdata:ctype<struct NUMBER>:1.5 cdata:ctype<struct NUMBER>:100",
        ),
        ("decimal.is_decimal(new(1)), decimal.is_decimal(1), decimal.is_decimal('1')", "ok true false false"),
    ],
)
def test_functions(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("decimal.abs()", 'error "usage: decimal.abs(decimal)"'),
        ("decimal.ln(0)", 'error "decimal operation failed"'),
        ("decimal.ln(-1)", 'error "decimal operation failed"'),
        ("decimal.sqrt(-1)", 'error "decimal operation failed"'),
        ("decimal.log10(0)", 'error "decimal operation failed"'),
        ("decimal.exp(1000)", 'error "decimal operation failed"'),
        ("decimal.round()", 'error "usage: decimal.round(decimal, scale)"'),
        ("decimal.round(1, 2)", 'error "expected cdata as 1 argument"'),
        ("decimal.round(new(1))", 'error "usage: decimal.round(decimal, scale)"'),
        ("decimal.rescale(new(1), 'x')", "ok cdata:ctype<struct NUMBER>:1"),
        ("decimal.scale(5)", 'error "expected cdata as 1 argument"'),
        ("decimal.trim()", 'error "usage: decimal.trim(decimal)"'),
        ("decimal.is_decimal()", 'error "usage: decimal.is_decimal(value)"'),
        ("decimal.precision()", 'error "usage: decimal.precision(decimal)"'),
    ],
)
def test_wrong_arguments_of_functions_are_errors(
    lua: OurLua | TarantoolLua, expression: str, result: str
) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("require('json').encode({new('1.50')})", 'ok "[\\0341.50\\034]"'),
        ("require('yaml').encode({new('1.50')})", 'ok "---\\010- 1.50\\010...\\010"'),
    ],
)
def test_decimals_are_serialized(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result
