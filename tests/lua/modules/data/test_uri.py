"""The module uri."""

from __future__ import annotations

import pytest

from tests.lua.modules.alike import assert_alike
from tests.lua.modules.random_snippets.values import quoted
from tests.lua.snippets import OurLua, TarantoolLua

PARSE = "return require('uri').parse"


def test_all_fields(ours: OurLua) -> None:
    assert ours.run(f"{PARSE}('http://user:secret@example.com:80/a/b?q=1#f')") == (
        'ok {["fragment"]="f",["host"]="example.com",["login"]="user",["password"]="secret",["path"]="/a/b",'
        '["query"]="q=1",["scheme"]="http",["service"]="80"}'
    )


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("3301", '["service"]="3301"'),
        ("127.0.0.1:3301", '["host"]="127.0.0.1",["ipv4"]="127.0.0.1",["service"]="3301"'),
        ("[::1]:3301", '["host"]="::1",["ipv6"]="::1",["service"]="3301"'),
        ("/tmp/x.sock", '["host"]="unix/",["service"]="/tmp/x.sock",["unix"]="/tmp/x.sock"'),
        ("u@unix/:/x:/p", '["host"]="unix/",["login"]="u",["path"]="/p",["service"]="/x",["unix"]="/x"'),
        ("user:@host", '["host"]="host",["login"]="user",["password"]=""'),
        ("host:", '["host"]="host"'),
        ("1.2.3", '["host"]="1.2.3"'),
        ("a%20b", '["host"]="a%20b"'),
    ],
)
def test_parts_may_be_missing(ours: OurLua, text: str, fields: str) -> None:
    assert ours.run(f"{PARSE}('{text}')") == f"ok {{{fields}}}"


@pytest.mark.parametrize("text", ["", " ", ":3301", "a b", "u:p:x@host", "[1]:1", "//host", "host:8a", "%"])
def test_invalid_texts_are_nil(ours: OurLua, text: str) -> None:
    assert ours.run(f"{PARSE}('{text}')") == "ok nil"


def test_format_leaves_the_password_out_unless_it_is_wanted(ours: OurLua) -> None:
    made = "local uri = require('uri') local u = uri.parse('http://u:p@h:1/x?q#f') "
    assert ours.run(made + "return uri.format(u), uri.format(u, true)") == (
        'ok "http://u@h:1/x?q#f" "http://u:p@h:1/x?q#f"'
    )


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "text",
    [
        "http:///path",
        "1://y",
        "a+b://y",
        "unix/:",
        "u:p@/tmp/x:8",
        "/tmp/x:/p?q",
        "[::ffff:1.2.3.4]:80",
        "[1:2:3:4:5:6:7:8:9]",
        "[2001:db8::1.2.3.4]",
        "256.1.1.1",
        "h:1/a|b",
        "h?%zz",
        "h:1/\0x",
        "?q#f",
    ],
)
def test_odd_texts_are_alike(ours: OurLua, real: TarantoolLua, text: str) -> None:
    assert_alike(ours, real, f"{PARSE}({quoted(text.encode())})")


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "call",
    [
        "parse()",
        "parse(5)",
        "format()",
        "format('x')",
        "format{host = 5}",
        "format{service = '1'}",
        "format{login = 'u'}",
        "format{scheme = '', host = 'h', query = '', fragment = ''}",
        "format{path = 'x', host = 'h'}",
    ],
)
def test_odd_calls_are_alike(ours: OurLua, real: TarantoolLua, call: str) -> None:
    assert_alike(ours, real, f"return require('uri').{call}")
