"""The module iconv."""

from __future__ import annotations

import random

import pytest

from tests.lua.snippets import OurLua, TarantoolLua

CONVERT = "local iconv = require('iconv') "
ENCODINGS = (
    "UTF-8",
    "UTF-16",
    "UTF-16LE",
    "UTF-32",
    "CP1251",
    "KOI8-R",
    "ISO-8859-1",
    "ISO-2022-JP",
    "UTF-7",
    "ASCII",
)

CALLS = [
    "iconv.new()",
    "iconv.new('UTF-8')",
    "iconv.new('UTF-8', 5)",
    "iconv.new('no such encoding', 'UTF-8')",
    "iconv.new('UTF-16LE', 'UTF-8')()",
    "iconv.new('UTF-16LE', 'UTF-8')(5)",
    "iconv.new('UTF-16LE', 'UTF-8')('\\195')",
    "iconv.new('UTF-16LE', 'UTF-8')('a\\255')",
    "iconv.new('ASCII', 'UTF-8')('\\195\\188')",
    "#iconv.new('UTF-32', 'UTF-8')(('\\195\\188'):rep(10000))",
    "iconv.new('UTF-8', 'CP1251')('')",
    "tostring(iconv.new('UTF-8', 'CP1251')):gsub('0x%x+', '')",
    "iconv.new('UTF-8', 'CP1251').member",
]


def test_texts_are_converted(ours: OurLua) -> None:
    assert (
        ours.run(f"{CONVERT} return iconv.new('UTF-8', 'CP1251')('\\207\\240')")
        == 'ok "\\208\\159\\209\\128"'
    )


def test_a_converter_is_usable_after_an_error(ours: OurLua) -> None:
    snippet = "local c = iconv.new('UTF-16LE', 'UTF-8') return pcall(c, '\\195'), c('a')"
    assert ours.run(CONVERT + snippet) == 'ok false "a\\000"'


@pytest.mark.real_tarantool
@pytest.mark.parametrize("call", CALLS)
def test_calls_are_alike(ours: OurLua, real: TarantoolLua, call: str) -> None:
    wrapped = (
        f"local r = {{pcall(function() return {call} end)}} return r[1], (tostring(r[2]):gsub(':%d+:', ':'))"
    )
    assert ours.run(CONVERT + wrapped) == real.run(CONVERT + wrapped)


@pytest.mark.real_tarantool
def test_random_texts_are_alike(ours: OurLua, real: TarantoolLua) -> None:
    choose = random.Random(3)
    for _ in range(300):
        to, source = choose.sample(ENCODINGS, 2)
        data = "".join(choose.choices("aZ 5+üПрив日\u20ac", k=choose.randrange(8))).encode()
        if choose.random() < 0.3:
            data = choose.randbytes(choose.randrange(8))
        text = "".join(f"\\{byte:03d}" for byte in data)
        call = f"local c = iconv.new('{to}', '{source}') local r = {{pcall(c, \"{text}\")}} "
        snippet = CONVERT + call + "return r[1], (r[2]:gsub(':%d+:', ':')), pcall(c, '')"
        assert ours.run(snippet) == real.run(snippet), snippet
