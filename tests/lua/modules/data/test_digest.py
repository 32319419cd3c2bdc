"""The modules digest and crypto."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from iproto_server.lua.errors import HostError
from iproto_server.lua.functions import cipher
from iproto_server.lua.functions.digest import digest, keyed_digest
from iproto_server.lua.runtime import Runtime
from tests.lua.modules.alike import assert_alike
from tests.lua.snippets import OurLua, TarantoolLua

MODULES = "local digest, crypto = require('digest'), require('crypto') "


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("digest.md5_hex('abc')", '"900150983cd24fb0d6963f7d28e17f72"'),
        ("digest.sha1_hex('abc')", '"a9993e364706816aba3e25717850c26c9cd0d89d"'),
        ("#digest.sha512('')", "64"),
        ("digest.crc32('abc')", "3384066120"),
        ("digest.crc32_update(digest.crc32('a'), 'bc')", "3384066120"),
        ("digest.murmur('abc')", "3408160902"),
        ("digest.guava(10863919174838991ULL, 11)", "6"),
        ("digest.base64_encode(('x'):rep(54))", f'"{"eHh4" * 18}\\010"'),
        ("digest.base64_encode('a\\255?>', {urlsafe = true})", '"Yf8_Pg"'),
        ("digest.base64_decode('YW Jj\\nYQ')", '"abca"'),
        ("#digest.urandom(5)", "5"),
        ("digest.pbkdf2_hex('password', 'salt', 1, 4)", '"120fb6cf"'),
        ("crypto.hmac.md5_hex('k', 'abc')", '"75972c9c6569f2f407752ddb02ac79de"'),
        ("crypto.digest.sha256('abc') == digest.sha256('abc')", "true"),
    ],
)
def test_functions(ours: OurLua, expression: str, expected: str) -> None:
    assert ours.run(f"{MODULES} return {expression}") == f"ok {expected}"


@pytest.mark.parametrize(
    "made",
    [
        "digest.crc32.new()",
        "digest.murmur.new()",
        "crypto.digest.sha1.new()",
        "crypto.hmac.sha1.new('key')",
    ],
)
def test_parts_give_what_the_whole_gives(ours: OurLua, made: str) -> None:
    snippet = (
        f"local whole, parts = {made}, {made} whole:update('abcdefghi') "
        "parts:update('abc') parts:update('') parts:update('defghi') return whole:result() == parts:result()"
    )
    assert ours.run(MODULES + snippet) == "ok true"


@pytest.mark.parametrize("mode", ["ecb", "cbc", "cfb", "ofb"])
def test_ciphers_decrypt_what_they_encrypt(ours: OurLua, mode: str) -> None:
    iv = "''" if mode == "ecb" else "('i'):rep(16)"
    snippet = (
        f"local cipher, key, iv = crypto.cipher.aes256.{mode}, ('k'):rep(32), {iv} "
        "local secret = cipher.encrypt('text', key, iv) "
        "return secret ~= 'text', cipher.decrypt(secret, key, iv)"
    )
    assert ours.run(MODULES + snippet) == 'ok true "text"'


def test_a_cipher_gives_whole_blocks_as_they_come(ours: OurLua) -> None:
    snippet = (
        "local c = crypto.cipher.aes128.cbc.encrypt.new(('k'):rep(16), ('i'):rep(16)) "
        "return #c:update('abc'), #c:update(('x'):rep(20)), #c:result(), pcall(c.update, c, 'x')"
    )
    assert ours.run(MODULES + snippet) == 'ok 0 16 16 false "Cipher not initialized"'


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("digest.md5_hex()", "Usage: digest.md5_hex(string)"),
        ("digest.crc32(5)", "Usage digest.crc32(string)"),
        ("digest.murmur()", "Usage: digest.murhash(string)"),
        ("digest.base64_encode('a', 5)", "Usage: digest.base64_encode(string[, table])"),
        ("digest.urandom()", "Usage: digest.urandom(len)"),
        ("digest.urandom(0 / 0)", "Usage: digest.urandom(len)"),
        ("digest.pbkdf2('p', 's', 1, 129)", "too big digest size"),
        ("digest.guava('x', 1)", "bad argument #1 to '?' (cannot convert 'string' to 'uint64_t')"),
        ("crypto.hmac.md5('k')", "Usage: hmac.md5(key, string)"),
        ("crypto.digest.nosuch", "Digest method \\034nosuch\\034 is not supported"),
        ("crypto.cipher.aes128.cbc.encrypt('text', 'key', 'iv')", "key size expected 16, got 3"),
        ("crypto.cipher.aes128.cbc.encrypt('text')", "Cipher not initialized"),
    ],
)
def test_bad_arguments(ours: OurLua, expression: str, message: str) -> None:
    described = ours.run(f"{MODULES} return {expression}")
    assert described.startswith("error ")
    assert described.endswith(f'{message}"')


def test_a_cipher_that_nobody_knows_any_more_is_freed() -> None:
    freed: list[int] = []
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(freed.append)
    runtime = Runtime({"cipher_free_address": lambda: ctypes.cast(free, ctypes.c_void_p).value})
    snippet = b"require('crypto').cipher.aes128.cbc.encrypt.new(('k'):rep(16), ('i'):rep(16))"
    runtime.call(runtime.load(snippet, b"=made"))
    runtime.call(runtime.load(b"collectgarbage() collectgarbage()", b"=collected"))
    assert len(freed) == 1


def test_a_process_ends_with_a_cipher_that_runs() -> None:
    program = (
        "from iproto_server.lua.runtime import Runtime\n"
        "runtime = Runtime()\n"
        "text = b\"X = require('crypto').cipher.aes128.cbc.encrypt.new(('k'):rep(16), ('i'):rep(16))\"\n"
        "runtime.call(runtime.load(text, b'=text'))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_hash_function_that_openssl_lacks_is_an_error() -> None:
    with pytest.raises(HostError, match="Can't init digest: "):
        digest(b"nosuch", b"text")
    with pytest.raises(HostError, match="Can't init HMAC: "):
        keyed_digest(b"nosuch", b"key", b"text")


def test_a_cipher_that_openssl_lacks_is_an_error() -> None:
    number, message = cipher.cipher_begin(b"NOSUCH", b"", b"", True)
    assert number is None
    assert message is not None
    assert message.startswith(b"OpenSSL error: ")


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "expression",
    [
        "digest.pbkdf2_hex('a\\0b', 's\\0x', 1, 8)",
        "digest.pbkdf2('p', 's', 0, 5), digest.pbkdf2('p', 's', 1, 0)",
        "digest.pbkdf2_hex('password', 'salt')",
        "digest.base64_decode('YQ==YQ=='), digest.base64_decode('Y=W=J=j'), digest.base64_decode('-_+/')",
        "digest.base64_encode(('x'):rep(53)), digest.base64_encode(('x'):rep(120), {nopad = true})",
        "digest.crc32_update(1.7, 'abc'), digest.crc32_update(-1, 'abc')",
        "digest.crc32_update('x', 'abc')",
        "digest.guava(-5, 11), digest.guava(10, 0), digest.guava(10, -1), digest.guava(1.7, 100)",
        "digest.urandom('3')",
        "digest.murmur.new{seed = -1}:result(), digest.murmur.new{seed = 2^31}:result()",
        "crypto.digest.ripemd160('abc'), crypto.hmac.sha384(('k'):rep(200), '')",
        "crypto.hmac.sha256(5, 'a')",
        "pcall(crypto.hmac.sha1.new)",
        "crypto.cipher.none.cbc.encrypt('abc', '', '')",
        "crypto.cipher.aes128.nosuch",
        "crypto.cipher_algo, crypto.cipher_mode",
    ],
)
def test_odd_calls_are_alike(ours: OurLua, real: TarantoolLua, expression: str) -> None:
    assert_alike(ours, real, f"{MODULES} return {expression}")
