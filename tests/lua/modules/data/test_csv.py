"""The module csv."""

from __future__ import annotations

import random

import pytest

from tests.lua.snippets import OurLua, TarantoolLua

CSV = "local csv, json = require('csv'), require('json') "

LOADED = [
    ('"a,b\\n c , d "', '{[1]={[1]="a",[2]="b"},[2]={[1]="c",[2]="d"}}'),
    ('\'"a,\\n""b",c\'', '{[1]={[1]="a,\\010\\034b",[2]="c"}}'),
    ("'a\\r\\n\\r\\nb\\n\\r'", '{[1]={[1]="a"},[2]={[1]=""},[3]={[1]="b"}}'),
    ("'a;b', {delimiter = ';'}", '{[1]={[1]="a",[2]="b"}}'),
    ("'head\\na', {skip_head_lines = 1}", '{[1]={[1]="a"}}'),
    ("'a\\n\"b'", '{[1]={[1]="a"}}'),
]

DUMPED = [
    ("{{1, 'a,b', 'c\"d'}, {'e\\nf'}}", '1,"a,b",c""d\n"e\nf"\n'),
    ("{1, true, 'x'}", "1,true,x\n"),
    ("{{1, 2}}, {delimiter = ';'}", "1;2\n"),
    ('{{"a\'b,"}}, {quote_char = "\'"}', "'a''b,'\n"),
    ("{}", "\n"),
]

WRONG = [
    "csv.load()",
    "csv.load({})",
    "csv.iterate(5)",
    "csv.load('a', {delimiter = ''})",
    "csv.dump()",
    "csv.dump('x')",
]
WRONG += ["csv.dump({{1}}, {}, {})", "csv.load({read = function() return nil end})"]


@pytest.mark.parametrize(("arguments", "rows"), LOADED)
def test_load_returns_rows(ours: OurLua, arguments: str, rows: str) -> None:
    assert ours.run(f"{CSV} return csv.load({arguments})") == f"ok {rows}"


@pytest.mark.parametrize(("arguments", "text"), DUMPED)
def test_dump_returns_text(ours: OurLua, arguments: str, text: str) -> None:
    shown = text.replace('"', "\\034").replace("\n", "\\010")
    assert ours.run(f"{CSV} return csv.dump({arguments})") == f'ok "{shown}"'


def test_dump_writes_to_an_object(ours: OurLua) -> None:
    snippet = "local t = {write = function(t, line) t[#t + 1] = line end} csv.dump({{1}, {2}}, nil, t) "
    snippet += "return #t, t[2]"
    assert ours.run(CSV + snippet) == 'ok 2 "2\\010"'


@pytest.mark.real_tarantool
@pytest.mark.parametrize("call", WRONG)
def test_wrong_arguments_are_refused_alike(ours: OurLua, real: TarantoolLua, call: str) -> None:
    snippet = f"{CSV} local ok, why = pcall(function() return {call} end) return ok, (why:gsub(':%d+:', ':'))"
    assert ours.run(snippet) == real.run(snippet)


@pytest.mark.real_tarantool
def test_random_texts_are_alike(ours: OurLua, real: TarantoolLua) -> None:
    choose = random.Random(1)
    for _ in range(1500):
        text = "".join(choose.choices("ab,;\" \n\r\t'", k=choose.randrange(12)))
        options = choose.choice(
            ["", ", {delimiter = ';'}", ', {quote_char = "\'"}', ", {skip_head_lines = 1}"]
        )
        quoted = "".join(f"\\{ord(sign):03d}" for sign in text)
        if choose.random() < 0.3:
            size = choose.randrange(1, 4)
            source = f'{{text = "{quoted}", read = function(s) local t = s.text:sub(1, {size}) '
            source += f"s.text = s.text:sub({size} + 1) return t end}}"
        else:
            source = f'"{quoted}"'
        snippet = f"{CSV} return csv.load({source}{options})"
        assert ours.run(snippet) == real.run(snippet), snippet


@pytest.mark.real_tarantool
def test_random_rows_are_alike(ours: OurLua, real: TarantoolLua) -> None:
    choose = random.Random(2)
    for _ in range(500):
        rows = []
        for _ in range(choose.randrange(4)):
            texts = (
                "".join(choose.choices("ab,;\"'\n\r ", k=choose.randrange(4)))
                for _ in range(choose.randrange(4))
            )
            values = ['"' + "".join(f"\\{ord(sign):03d}" for sign in text) + '"' for text in texts]
            rows.append("{" + ", ".join([*values, *choose.sample(["1", "2.5", "true", "5ULL"], 1)]) + "}")
        options = choose.choice(["", ", {delimiter = ';'}", ', {quote_char = "\'"}'])
        snippet = f"{CSV} return csv.dump({{{', '.join(rows)}}}{options})"
        assert ours.run(snippet) == real.run(snippet), snippet
