"""Completion of names in a console."""

from __future__ import annotations

import pytest

from tests.lua.snippets import OurLua, TarantoolLua

PREAMBLE = """\
things = {
    abc = 1, abd = function() end, ['x y'] = 2, [1] = 3, _hidden = 4, sub = {a1 = 1, a2 = 2},
    own = setmetatable({mine = 1}, {__index = {given = 1, give = function() end}}),
    computed = setmetatable({}, {__index = function() return {} end}),
    callable = setmetatable({}, {__call = print}),
    protected = setmetatable({}, {__index = {secret = 1}, __metatable = 'no'}),
    number = 5, text = 'text', long = 1LL, object = newproxy(true),
}
getmetatable(things.object).__index = {method = print, value = 1}
local function completed(text, first, last)
    local found = require('console').completion_handler(text, first or 0, last or #text)
    if found then
        local common = table.remove(found, 1)
        table.sort(found)
        return common, found
    end
end
"""

WORDS = (
    *(
        "thing",
        "things",
        "things.",
        "things.a",
        "things.ab",
        "things:",
        "things:a",
        "things.sub.",
        "things.x",
    ),
    *(
        "things.own.",
        "things.own:",
        "things.computed.",
        "things.protected.",
        "things.number.",
        "things.text:s",
    ),
    *(
        "things.long.",
        "things.object.",
        "things.object:",
        "things._",
        "things.callable",
        "things.no.x",
        "things.abd.",
    ),
    *(
        "fo",
        "whi",
        "end",
        "els",
        "tru",
        "ni",
        "loc",
        "retur",
        "string.fo",
        "table.",
        "nosuch.",
        "(",
        "1",
        "1.",
        "..",
    ),
    *(
        "things..",
        "things.sub:",
        "f(things.a",
        "x = things.a",
        "things .a",
        "'things.a",
        "#things.a",
        "_VERS",
    ),
)


@pytest.mark.real_tarantool
@pytest.mark.parametrize("word", WORDS)
def test_a_word_has_the_completions_of_a_real_tarantool(ours: OurLua, real: TarantoolLua, word: str) -> None:
    snippet = f"{PREAMBLE} return completed([[{word}]])"
    assert ours.run(snippet) == real.run(snippet)


@pytest.mark.real_tarantool
@pytest.mark.parametrize("place", ["0, 3", "2, 5", "5, 0", "0, 30", "4, 12"])
def test_the_length_of_the_word_counts(ours: OurLua, real: TarantoolLua, place: str) -> None:
    snippet = f"{PREAMBLE} return completed('things.a', {place})"
    assert ours.run(snippet) == real.run(snippet)
