"""The module utf8."""

from __future__ import annotations

import pytest

from tests.lua.modules.alike import assert_alike
from tests.lua.snippets import OurLua, TarantoolLua


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("utf8.char(65, 228, 8364)", '"A\\195\\164\\226\\130\\172"'),
        ("utf8.len('aä€')", "3"),
        ("utf8.len('aä€', 2)", "2"),
        ("utf8.len('a\\255b')", "nil 2"),
        ("utf8.len('abc', 9)", 'nil "position is out of string"'),
        ("utf8.sub('aä€b', 2, -2)", '"\\195\\164\\226\\130\\172"'),
        ("utf8.next('aä', 2)", "4 228"),
        ("utf8.upper('straße')", '"STRASSE"'),
        ("utf8.lower('ΑΣ')", '"\\206\\177\\207\\130"'),
        ("utf8.upper('a\\255')", '"A\\255"'),
        ("utf8.isalpha('ä')", "true"),
        ("utf8.isalpha('ab')", "false"),
        ("utf8.isdigit(0x663)", "true"),
        ("utf8.islower('ß')", "true"),
        ("utf8.isupper('Ä')", "true"),
        ("utf8.cmp('a', 'A')", "-1"),
        ("utf8.cmp('é', 'e\\204\\129')", "0"),
        ("utf8.casecmp('ä', 'A')", "0"),
        ("utf8.casecmp('b', 'A')", "1"),
    ],
)
def test_functions(ours: OurLua, expression: str, expected: str) -> None:
    assert ours.run(f"return {expression}") == f"ok {expected}"


def test_next_iterates_over_code_points(ours: OurLua) -> None:
    snippet = "local codes = {} for _, code in utf8.next, 'aä€' do codes[#codes + 1] = code end return codes"
    assert ours.run(snippet) == "ok {[1]=97,[2]=228,[3]=8364}"


def test_it_is_global_and_a_module(ours: OurLua) -> None:
    assert ours.run("return utf8 == require('utf8')") == "ok true"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("utf8.char()", "Usage: utf8.char(<char code>"),
        ("utf8.char('x')", "bad argument #1 to 'char' (number expected, got string)"),
        ("utf8.len({})", "Usage: utf8.len(<string>, [i, [j]])"),
        ("utf8.len('a', 'x')", "bad argument #2 to 'len' (number expected, got string)"),
        ("utf8.isalpha()", "Usage: utf8.isalpha(<string> or <one symbol code>)"),
        ("utf8.cmp('a')", "Usage: utf8.cmp(<string1>, <string2>)"),
    ],
)
def test_bad_arguments(ours: OurLua, call: str, message: str) -> None:
    assert ours.run(f"local result = {call} return result") == f'error "snippet:1: {message}"'


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "snippet",
    [
        "return utf8.char(-1, 0x110000, 0xD800, 1e10, 1.5, 0)",
        "return utf8.sub('a\\255bc', -3, -2), utf8.sub('\\255', 1), utf8.sub('', 1)",
        "return utf8.next('aä', -1), utf8.next('aä', 10), utf8.next('', 0)",
        "return utf8.upper('ŉ ΐ ﬁ ᾳ ǆ'), utf8.lower('ẞ İ Σ. ΑΣΑ Α.Σ')",
        "return utf8.isalpha('ª'), utf8.islower('ª'), utf8.isupper('Ⅷ'), utf8.isupper('ǅ')",
        "return utf8.isdigit('²'), utf8.isdigit('½'), utf8.isdigit('')",
        "return utf8.cmp('\\0', ''), utf8.cmp('a b', 'ab'), utf8.cmp('\\255', '\\254')",
        "return utf8.casecmp('ß', 'SS'), utf8.casecmp('ё', 'е'), utf8.casecmp('й', 'И')",
        "local s = setmetatable({}, {__index = utf8}) local a = s:isalpha() return a",
    ],
)
def test_odd_calls_are_alike(ours: OurLua, real: TarantoolLua, snippet: str) -> None:
    assert_alike(ours, real, snippet)
