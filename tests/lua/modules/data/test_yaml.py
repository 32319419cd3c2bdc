"""The module yaml: examples that a real Tarantool agrees with."""

from __future__ import annotations

import pytest

from tests.lua.modules.alike import described
from tests.lua.snippets import OurLua, TarantoolLua

PREAMBLE = "local yaml, ffi = require('yaml'), require('ffi') "


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("yaml.encode(nil)", 'ok "--- null\\010...\\010"'),
        ("yaml.encode(true)", 'ok "--- true\\010...\\010"'),
        ("yaml.encode('text')", 'ok "--- text\\010...\\010"'),
        ("yaml.encode('')", 'ok "---\\010...\\010"'),
        ("yaml.encode(1)", 'ok "--- 1\\010...\\010"'),
        ("yaml.encode(1.5)", 'ok "--- 1.5\\010...\\010"'),
        ("yaml.encode(1e300)", 'ok "--- 1e+300\\010...\\010"'),
        ("yaml.encode(18446744073709551615ULL)", 'ok "--- 18446744073709551615\\010...\\010"'),
        ("yaml.encode(yaml.NULL)", 'ok "--- null\\010...\\010"'),
        ("yaml.encode(1/0)", 'ok "--- inf\\010...\\010"'),
        ("yaml.encode(0/0)", 'ok "--- -nan\\010...\\010"'),
    ],
)
def test_scalars_are_encoded(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("yaml.encode('1')", "ok \"--- '1'\\010...\\010\""),
        ("yaml.encode('true')", "ok \"--- 'true'\\010...\\010\""),
        ("yaml.encode('null')", "ok \"--- 'null'\\010...\\010\""),
        ("yaml.encode('~')", "ok \"--- '~'\\010...\\010\""),
        ("yaml.encode('1e5')", "ok \"--- '1e5'\\010...\\010\""),
        ("yaml.encode('0x1F')", "ok \"--- '0x1F'\\010...\\010\""),
        ("yaml.encode('a: b')", "ok \"--- 'a: b'\\010...\\010\""),
        ("yaml.encode('# c')", "ok \"--- '# c'\\010...\\010\""),
        ("yaml.encode('- a')", "ok \"--- '- a'\\010...\\010\""),
        ("yaml.encode('a #b')", "ok \"--- 'a #b'\\010...\\010\""),
        ("yaml.encode(' a')", "ok \"--- ' a'\\010...\\010\""),
        ('yaml.encode("it\'s")', 'ok "--- it\'s\\010...\\010"'),
        ("yaml.encode('on')", 'ok "--- on\\010...\\010"'),
    ],
)
def test_ambiguous_texts_are_quoted(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("yaml.encode('a\\nb')", "ok \"--- 'a\\010\\010  b'\\010...\\010\""),
        ("yaml.encode('a\\n\\nb')", 'ok "--- |-\\010  a\\010\\010  b\\010...\\010"'),
        ("yaml.encode('a\\n\\nb\\n')", 'ok "--- |\\010  a\\010\\010  b\\010...\\010"'),
        ("yaml.encode('a\\n b')", 'ok "--- \\034a\\092n b\\034\\010...\\010"'),
        ("yaml.encode({'a\\n\\nb\\n'})", 'ok "---\\010- |\\010  a\\010\\010  b\\010...\\010"'),
    ],
)
def test_texts_with_line_breaks(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("yaml.encode('\\0')", 'ok "--- \\034\\0920\\034\\010...\\010"'),
        ("yaml.encode('é日')", 'ok "--- \\195\\169\\230\\151\\165\\010...\\010"'),
        ("yaml.encode('😀')", 'ok "--- \\034\\092U0001F600\\034\\010...\\010"'),
        ("yaml.encode('\\255\\254')", 'ok "--- !!binary //4=\\010...\\010"'),
        (
            "yaml.encode(('word '):rep(20))",
            (
                "ok \"--- 'word word word word word word word word word word word word word word word "
                "word\\010  word word word word '\\010...\\010\""
            ),
        ),
    ],
)
def test_other_texts(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("yaml.encode({})", 'ok "--- []\\010...\\010"'),
        ("yaml.encode({1, 2})", 'ok "---\\010- 1\\010- 2\\010...\\010"'),
        ("yaml.encode({a = 1})", 'ok "---\\010a: 1\\010...\\010"'),
        (
            "yaml.encode({{1, {2}}, {a = {3}}})",
            'ok "---\\010- - 1\\010  - - 2\\010- a:\\010  - 3\\010...\\010"',
        ),
        ("yaml.encode({a = {b = {c = {}}}})", 'ok "---\\010a:\\010  b:\\010    c: []\\010...\\010"'),
        ("yaml.encode({[{1}] = 2})", 'ok "---\\010? - 1\\010: 2\\010...\\010"'),
        ("yaml.encode({[1] = 1, [30] = 3})", 'ok "---\\01030: 3\\0101: 1\\010...\\010"'),
    ],
)
def test_tables_are_encoded(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("yaml.encode(setmetatable({1, {2}}, {__serialize = 'seq'}))", 'ok "--- [1, [2]]\\010...\\010"'),
        ("yaml.encode(setmetatable({a = {1}}, {__serialize = 'map'}))", "ok \"--- {'a': [1]}\\010...\\010\""),
        ("yaml.encode(setmetatable({1}, {__serialize = 'sequence'}))", 'ok "---\\010- 1\\010...\\010"'),
        (
            "yaml.encode(setmetatable({1}, {__serialize = function() return {a = 1} end}))",
            'ok "---\\010a: 1\\010...\\010"',
        ),
        ("yaml.encode(setmetatable({1}, {__serialize = 'other'}))", 'error "invalid __serialize value"'),
    ],
)
def test_serialize_decides_how_a_table_is_encoded(
    lua: OurLua | TarantoolLua, expression: str, result: str
) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            "(function() local t = {1} return yaml.encode({t, t}) end)()",
            'ok "---\\010- &0\\010  - 1\\010- *0\\010...\\010"',
        ),
        (
            "(function() local t = {} t.own = t return yaml.encode(t) end)()",
            'ok "--- &0\\010own: *0\\010...\\010"',
        ),
    ],
)
def test_tables_that_occur_twice_have_anchors(
    lua: OurLua | TarantoolLua, expression: str, result: str
) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("yaml.encode()", 'error "Usage: encode(object, {tag_prefix = <string>, tag_handle = <string>})"'),
        (
            "yaml.encode(1, 2)",
            'error "Usage: encode(object, {tag_prefix = <string>, tag_handle = <string>})"',
        ),
        ("yaml.encode(print)", "error \"unsupported Lua type 'function'\""),
        ("yaml.encode({print})", "error \"unsupported Lua type 'function'\""),
        ("yaml.encode(ffi.new('int[2]'))", "error \"unsupported Lua type 'cdata'\""),
        (
            "yaml.encode(1, {tag_prefix = 'x'})",
            'error "Usage: encode(object, {tag_prefix = <string>, tag_handle = <string>})"',
        ),
        ("yaml.encode(1, {tag_handle = 'x', tag_prefix = 'y'})", "ok nil \"tag handle must start with '!'\""),
        ("yaml.encode(1, {tag_handle = '!x', tag_prefix = 'y'})", "ok nil \"tag handle must end with '!'\""),
        (
            "yaml.encode(1, {tag_handle = '!a b!', tag_prefix = 'y'})",
            'ok nil "tag handle must contain alphanumerical characters only"',
        ),
    ],
)
def test_what_cannot_be_encoded_is_an_error(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            "yaml.encode({1}, {tag_handle = '!push!', tag_prefix = 'tag:example.com/push,2018'})",
            'ok "%TAG !push! tag:example.com/push,2018\\010---\\010- 1\\010...\\010"',
        ),
        (
            ("yaml.decode('%TAG !push! tag:example.com,2018:push\\n---\\n1\\n...\\n', {tag_only = true})"),
            'ok "!push!" "tag:example.com,2018:push"',
        ),
        ("yaml.decode('---\\n1\\n...\\n', {tag_only = true})", "ok nil"),
    ],
)
def test_a_document_with_a_tag(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("yaml.decode('1')", "ok 1"),
        ("yaml.decode('-1.5')", "ok -1.5"),
        ("yaml.decode('0x1F')", "ok 31"),
        ("yaml.decode('100000000000000')", "ok cdata:ctype<int64_t>:100000000000000LL"),
        ("yaml.decode('18446744073709551616')", "ok cdata:ctype<uint64_t>:18446744073709551615ULL"),
        ("yaml.decode('true'), yaml.decode('no')", "ok true false"),
        ("yaml.decode('null') == nil, yaml.decode('~') == nil", "ok true true"),
        ("yaml.decode('.5')", "ok 0.5"),
        ("yaml.decode('inf')", "ok inf"),
        ("yaml.decode('text')", 'ok "text"'),
        ("yaml.decode(\"'1'\")", 'ok "1"'),
        ("yaml.decode('\"a\\\\n\\\\x41\\\\u00e9\"')", 'ok "a\\010A\\195\\169"'),
        ("yaml.decode('on')", 'ok "on"'),
        ("yaml.decode(5)", "ok 5"),
    ],
)
def test_scalars_are_decoded(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("yaml.decode('- 1\\n- - 2\\n  - 3\\n')", "ok seq:{[1]=1,[2]=seq:{[1]=2,[2]=3}}"),
        ("yaml.decode('a: 1\\nb:\\n  c: 2\\n')", 'ok map:{["a"]=1,["b"]=map:{["c"]=2}}'),
        ("yaml.decode('a:\\n- 1\\n- 2\\n')", 'ok map:{["a"]=seq:{[1]=1,[2]=2}}'),
        ("yaml.decode('[1, [2], {a: 3}]')", 'ok seq:{[1]=1,[2]=seq:{[1]=2},[3]=map:{["a"]=3}}'),
        ("yaml.decode('{a: 1, b: }')", 'ok map:{["a"]=1,["b"]=""}'),
        ("yaml.decode('? [1]\\n: 2\\n')", " 112::==[[]]aekmopqs{{}}"),
        ("yaml.decode('[a: 1]')", 'ok seq:{[1]=map:{["a"]=1}}'),
        ("yaml.decode('a: &x [1]\\nb: *x\\n')", 'ok map:{["a"]=seq:{[1]=1},["b"]=seq:{[1]=1}}'),
    ],
)
def test_collections_are_decoded(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("yaml.decode('|\\n a\\n b\\n')", 'ok "a\\010b\\010"'),
        ("yaml.decode('>\\n a\\n b\\n\\n c\\n')", 'ok "a b\\010c\\010"'),
        ("yaml.decode('|-\\n a\\n')", 'ok "a"'),
        ("yaml.decode('|+\\n a\\n\\n')", 'ok "a\\010\\010"'),
        ("yaml.decode('|2\\n   a\\n')", 'ok " a\\010"'),
        ("yaml.decode('a\\n  b\\n\\n  c')", 'ok "a b\\010c"'),
        ("yaml.decode(\"'a\\n  b'\")", 'ok "a b"'),
    ],
)
def test_styles_of_texts_are_decoded(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("yaml.decode('!!str 1')", 'ok "1"'),
        ("yaml.decode('!!int 1x')", "ok 1"),
        ("yaml.decode('!!float 1')", "ok 1"),
        ("yaml.decode('!!bool x')", "ok false"),
        ("yaml.decode('!!binary aGVsbG8=')", 'ok "hello"'),
        ("yaml.decode('!own 1')", "ok 1"),
    ],
)
def test_tags_are_decoded(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("yaml.decode('--- 1\\n--- 2\\n')", "ok 1 2"),
        ("yaml.decode('')", "ok"),
        ("yaml.decode('---\\n...\\n')", 'ok ""'),
        ("yaml.decode('# only a comment\\n')", "ok"),
    ],
)
def test_several_documents_are_several_values(
    lua: OurLua | TarantoolLua, expression: str, result: str
) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("yaml.decode()", '     ""(),.:=U[]_aaaabccdddeeeeeegglllmmnnnoooooorrrsttuyy{}'),
        ("yaml.decode({})", '     ""(),.:=U[]_aaaabccdddeeeeeegglllmmnnnoooooorrrsttuyy{}'),
        (
            "yaml.decode('[1')",
            (
                "error \"did not find expected ',' or ']' at document: 1, line: 2, column: "
                '1\\010while parsing a flow sequence at line: 1, column: 1\\010"'
            ),
        ),
        (
            "yaml.decode('{a: 1')",
            (
                "error \"did not find expected ',' or '}' at document: 1, line: 2, column: "
                '1\\010while parsing a flow mapping at line: 1, column: 1\\010"'
            ),
        ),
        (
            "yaml.decode('a: b: c')",
            (
                'error "mapping values are not allowed in this context at document: 1, line: 1, column: '
                '5\\010"'
            ),
        ),
        ("yaml.decode('- 1\\n b')", 'ok seq:{[1]="1 b"}'),
        ("yaml.decode('*a')", 'error "invalid reference: a"'),
        (
            "yaml.decode('&a &b 1')",
            'error "did not find expected <document start> at document: 1, line: 1, column: 4\\010"',
        ),
        (
            "yaml.decode('\"a')",
            (
                'error "found unexpected end of stream at document: 0, line: 1, column: 3\\010while '
                'scanning a quoted scalar at line: 1, column: 1\\010"'
            ),
        ),
        (
            "yaml.decode('\"\\\\q\"')",
            (
                'error "found unknown escape character at document: 0, line: 1, column: 2\\010while '
                'parsing a quoted scalar at line: 1, column: 1\\010"'
            ),
        ),
        ("yaml.decode('%YAML 3.0\\n--- 1')", 'error "found incompatible YAML document at document: 0\\010"'),
        ("yaml.decode('!x!y 1')", 'error "unexpected END event"'),
        ("yaml.decode('\\255')", 'error "invalid leading UTF-8 octet at document: 0\\010"'),
        ("yaml.decode('a\\0b')", 'error "control characters are not allowed at document: 0\\010"'),
        (
            "yaml.decode('\\ta: 1')",
            (
                'error "found character that cannot start any token at document: 0\\010while scanning '
                'for the next token at line: 1, column: 1\\010"'
            ),
        ),
        (
            "yaml.decode('- @a')",
            (
                'error "found character that cannot start any token at document: 1, line: 1, column: '
                '3\\010while scanning for the next token at line: 1, column: 3\\010"'
            ),
        ),
        (
            "yaml.decode('|0\\n a')",
            (
                'error "found an indentation indicator equal to 0 at document: 0, line: 1, column: '
                '2\\010while scanning a block scalar at line: 1, column: 1\\010"'
            ),
        ),
        ("yaml.decode('{nan: 1}')", 'error "table index is NaN"'),
    ],
)
def test_wrong_texts_are_errors(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            (
                "(function() local own = yaml.new() own.cfg{encode_invalid_as_nil = true} return "
                "own.encode({print}) end)()"
            ),
            'ok "---\\010- null\\010...\\010"',
        ),
        (
            (
                "(function() local own = yaml.new() own.cfg{encode_invalid_numbers = false} return "
                "own.encode(1/0) end)()"
            ),
            'error "number must not be NaN or Inf"',
        ),
        (
            (
                "(function() local own = yaml.new() own.cfg{decode_save_metatables = false} return "
                "getmetatable(own.decode('[1]')) end)()"
            ),
            "ok nil",
        ),
        ("yaml.cfg()", "error \"bad argument #2 to '?' (table expected, got no value)\""),
    ],
)
def test_options_of_a_serializer(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result
