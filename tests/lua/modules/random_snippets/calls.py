"""Random calls of modules whose functions take texts and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from tests.lua.modules.random_snippets.values import (
    ascii_text,
    byte_text,
    code_point,
    junk,
    nested_table,
    number,
    quoted,
    wide_text,
)

Value = Callable[[Random], str]

_STRING: Mapping[str, tuple[Value, ...]] = {
    "split": (ascii_text, lambda random: ascii_text(random, 2), number),
    "ljust": (ascii_text, number, lambda random: ascii_text(random, 1)),
    "rjust": (ascii_text, number, lambda random: ascii_text(random, 1)),
    "center": (ascii_text, number, lambda random: ascii_text(random, 1)),
    "startswith": (ascii_text, lambda random: ascii_text(random, 2), number, number),
    "endswith": (ascii_text, lambda random: ascii_text(random, 2), number, number),
    "hex": (byte_text,),
    "fromhex": (lambda random: quoted("".join(random.choices("0123456789abcdefABCDEFg", k=6)).encode()),),
    "strip": (ascii_text, lambda random: ascii_text(random, 3)),
    "lstrip": (ascii_text, lambda random: ascii_text(random, 3)),
    "rstrip": (ascii_text, lambda random: ascii_text(random, 3)),
}

_UTF8: Mapping[str, tuple[Value, ...]] = {
    "char": (code_point, code_point, code_point),
    "len": (wide_text, number, number),
    "sub": (wide_text, number, number),
    "next": (wide_text, number),
    "upper": (wide_text,),
    "lower": (wide_text,),
    "isalpha": (lambda random: wide_text(random, 1),),
    "isdigit": (code_point,),
    "islower": (lambda random: wide_text(random, 1),),
    "isupper": (code_point,),
    "cmp": (wide_text, wide_text),
    "casecmp": (wide_text, wide_text),
}


def _options(random: Random) -> str:
    names = [name for name in ("nopad", "nowrap", "urlsafe") if random.random() < 0.4]
    return "{" + ", ".join(f"{name} = {random.choice(('true', 'false', '1'))}" for name in names) + "}"


def _long_text(random: Random) -> str:
    return byte_text(random, random.choice((5, 60, 130)))


def _base64(random: Random) -> str:
    return quoted("".join(random.choices("ABCYWJjxyz019+/-_= \n!", k=random.randint(0, 40))).encode())


def _state(random: Random) -> str:
    return random.choice((str(random.randint(0, 2**53)), f"{random.randint(0, 2**64 - 1)}ULL", "-5", "1.7"))


_METHODS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
_DIGEST: Mapping[str, tuple[Value, ...]] = {
    **dict.fromkeys(_METHODS, (_long_text,)),
    **{f"{method}_hex": (_long_text,) for method in _METHODS},
    "crc32": (_long_text,),
    "crc32_update": (lambda random: str(random.randint(0, 2**32 - 1)), _long_text),
    "murmur": (_long_text,),
    "guava": (_state, lambda random: str(random.randint(0, 1000))),
    "base64_encode": (_long_text, _options),
    "base64_decode": (_base64,),
    "pbkdf2": (byte_text, byte_text, lambda random: str(random.randint(0, 3)), number),
    "pbkdf2_hex": (byte_text, byte_text, lambda _: "2", lambda random: str(random.randint(0, 140))),
}


def _call(random: Random, functions: Mapping[str, tuple[Value, ...]]) -> tuple[str, str]:
    """A function's name, and arguments that fit more or less."""
    name = random.choice(list(functions))
    arguments = [value(random) for value in functions[name]]
    if random.random() < 0.3:
        del arguments[random.randint(0, len(arguments)) :]
    if arguments and random.random() < 0.15:
        arguments[random.randrange(len(arguments))] = junk(random)
    return name, ", ".join(arguments)


def _returned(random: Random, call: str) -> str:
    """A chunk that returns a call's results, by a tail call or not; the errors' positions depend on it."""
    return f"return {call}" if random.random() < 0.5 else f"local a, b, c = {call} return a, b, c"


def string_snippet(random: Random) -> str:
    name, arguments = _call(random, _STRING)
    return _returned(random, f"string.{name}({arguments})")


_PATTERNS = (
    *(".", "a", "b*", "a-", "%w+", "^a", "()", "(a)(b?)", "%f[a]", "[ab]*", "$", "a$", "", "(", "%", "[a"),
    *("(.)%1", ".-", "a?", "^", "^b*", "%b()"),
)
_REPLACEMENTS = (
    "function(c) return '<' .. c .. '>' end",
    "function() end",
    "function(...) return select('#', ...) end",
    "function(_, b) return b end",
    "function() return {} end",
    "string.upper",
    "'%0%0'",
    "{a = 'x', b = false}",
)


def gsub_snippet(random: Random) -> str:
    text = "".join(random.choices("ab() c", k=random.randint(0, 6)))
    pattern = "".join(random.choices(_PATTERNS, k=random.choice((1, 1, 2))))
    limit = random.choice(("", "", ", 1", ", '2'", ", -1", ", {}"))
    call = f"string.gsub('{text}', '{pattern}', {random.choice(_REPLACEMENTS)}{limit})"
    return _returned(random, call)


def utf8_snippet(random: Random) -> str:
    name, arguments = _call(random, _UTF8)
    return _returned(random, f"utf8.{name}({arguments})")


def digest_snippet(random: Random) -> str:
    if random.random() < 0.1:
        return _parts_snippet(random)
    name, arguments = _call(random, _DIGEST)
    return "local digest = require('digest') " + _returned(random, f"digest.{name}({arguments})")


def _parts_snippet(random: Random) -> str:
    """A text in several parts."""
    made = random.choice(
        (
            "require('digest').crc32.new()",
            "require('digest').murmur.new{seed = 77}",
            "require('digest').murmur.new()",
            "require('crypto').digest.sha256.new()",
            "require('crypto').hmac.md5.new('key')",
        )
    )
    updates = " ".join(f"d:update({byte_text(random)})" for _ in range(random.randint(0, 4)))
    return f"local d = {made} {updates} return d:result()"


def crypto_snippet(random: Random) -> str:
    if random.random() < 0.3:
        method = random.choice(_METHODS) + random.choice(("", "_hex"))
        return f"return require('crypto').hmac.{method}({byte_text(random, 100)}, {byte_text(random, 80)})"
    algorithm, size = random.choice((("aes128", 16), ("aes192", 24), ("aes256", 32)))
    mode = random.choice(("ecb", "cbc", "cfb", "ofb"))
    key = quoted(random.randbytes(size))
    iv = quoted(b"" if mode == "ecb" else random.randbytes(16))
    made = f"local cipher = require('crypto').cipher.{algorithm}.{mode} local key, iv = {key}, {iv} "
    if random.random() < 0.5:
        return made + (
            f"local text = {byte_text(random, 50)} local secret = cipher.encrypt(text, key, iv) "
            "return secret, cipher.decrypt(secret, key, iv) == text"
        )
    updates = ", ".join(f"c:update({byte_text(random, 30)})" for _ in range(random.randint(1, 4)))
    return made + f"local c = cipher.encrypt.new(key, iv) return {updates}, c:result()"


def table_snippet(random: Random) -> str:
    return (
        "local shared, copied = {9}, setmetatable({8}, {__copy = function() return {7} end}) "
        "local meta = {__index = {z = 1}} "
        "local copying = {__copy = function(t) return {copied = rawget(t, 'a') or 'none'} end} "
        f"local t = {nested_table(random)} local c = table.{random.choice(('copy', 'deepcopy'))}(t) "
        "return c, rawequal(c, t), getmetatable(c) == getmetatable(t), rawequal(c[1], t[1]), "
        "rawequal(c.a, t.a), rawequal(c.a, c.b)"
    )


_URI_PARTS: Mapping[str, tuple[str, ...]] = {
    "scheme": ("", "", "", "http://", "a+b://", "tarantool://", "X:/"),
    "user": ("", "", "", "user@", "u:p@", "u:@", "u%40:p%2f@", "a.b;c:d=e@"),
    "host": (
        "h",
        "host.com",
        "127.0.0.1",
        "1.2.3",
        "[::1]",
        "[2001:db8::1]",
        "[::ffff:1.2.3.4]",
        "3301",
        "a_b",
        "",
    ),
    "service": ("", "", ":80", ":http", ":", ":99999"),
    "path": ("", "", "/", "/a/b", "/a:b@c", "/%20", "//x"),
    "query": ("", "", "?", "?a=1&b=2", "?q?r/s"),
    "fragment": ("", "", "#", "#f", "#a/b?c"),
}


def _uri(random: Random) -> str:
    """An identifier, sometimes with an odd character where that makes no second meaning possible."""
    parts = {name: random.choice(choices) for name, choices in _URI_PARTS.items()}
    if random.random() < 0.1:
        parts.update(host="unix/", service=":/tmp/x.sock" + random.choice(("", ":")), path="")
        return "".join(parts.values())
    if parts["scheme"]:
        return "".join(parts.values()) if parts["host"] else ""
    text = "".join(parts.values())
    if text and random.random() < 0.2:
        place = random.randrange(len(text))
        text = text[:place] + random.choice("ab1?#[]%. \0|") + text[place:]
    return text


def uri_snippet(random: Random) -> str:
    literal = quoted(_uri(random).encode())
    if random.random() < 0.6:
        return f"return require('uri').parse({literal})"
    secret = random.choice(("", ", true", ", false"))
    return f"local uri = require('uri') local u = uri.parse({literal}) return u and uri.format(u{secret})"


def errno_snippet(random: Random) -> str:
    number = str(random.randint(-5, 140)) if random.random() < 0.9 else junk(random)
    return f"local errno = require('errno') errno(0) return errno.strerror({number})"


def _variable(random: Random) -> str:
    """A name or a value of an environment variable, sometimes a wrong one."""
    if random.random() < 0.15:
        return junk(random)
    return random.choice(("'LUA_TEST_A'", "'LUA_TEST_B'", "'a b'", "'x\\0y'", "''", "'LUA_TEST_C'"))


def os_snippet(random: Random) -> str:
    names = [_variable(random) for _ in range(2)]
    wrong = ("''", "nil")  # Tarantool's message is one of an error in its code
    lines = [f"os.setenv({name}, {_variable(random)})" for name in names if name not in wrong]
    lines.append("local all = os.environ()")
    lines.append(f"return os.getenv({names[0]}), all.LUA_TEST_A, all.LUA_TEST_B, all['a b']")
    return "\n".join(lines)
