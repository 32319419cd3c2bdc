"""Random snippets with values of `box` do the same here and in a real Tarantool.

`LUA_SNIPPETS=20000` makes more of them; `python -m tests.lua.values.differential` prints all differences.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.lua.snippets import OurLua, TarantoolLua
from tests.lua.values.alike import run
from tests.lua.values.differential import differences
from tests.lua.values.random_box import SNIPPETS

COUNT = int(os.environ.get("LUA_SNIPPETS", "200"))
SEED = int(os.environ.get("LUA_SEED", "20"))


@pytest.mark.real_tarantool
@pytest.mark.parametrize("kind", SNIPPETS)
def test_random_snippets_are_alike(ours: OurLua, real: TarantoolLua, kind: str) -> None:
    assert list(differences(ours, real, SEED, COUNT, [kind])) == []


@pytest.mark.parametrize(
    ("kind", "fewest"), [("error", 90), ("packing", 60), ("tuple", 40), ("unpacking", 30), ("update", 8)]
)
def test_many_random_snippets_are_no_errors(ours: OurLua, kind: str, fewest: int) -> None:
    random = Random(SEED)
    described = [run(ours, SNIPPETS[kind](random)) for _ in range(100)]
    assert not [each for each in described if each.startswith("syntax")]
    assert sum(each.startswith("ok") for each in described) >= fewest
