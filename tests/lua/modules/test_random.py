"""Random snippets do the same here and in a real Tarantool.

`LUA_SNIPPETS=20000` makes more of them; `python -m tests.lua.modules.differential` prints all differences.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.lua.modules.differential import differences
from tests.lua.modules.random_snippets import SNIPPETS
from tests.lua.snippets import OurLua, TarantoolLua

COUNT = int(os.environ.get("LUA_SNIPPETS", "200"))
SEED = int(os.environ.get("LUA_SEED", "20"))


@pytest.mark.real_tarantool
@pytest.mark.parametrize("module", SNIPPETS)
def test_random_snippets_are_alike(ours: OurLua, real: TarantoolLua, module: str) -> None:
    assert list(differences(ours, real, SEED, COUNT, [module])) == []


@pytest.mark.parametrize("module", SNIPPETS)
def test_most_random_snippets_are_no_errors(
    ours: OurLua, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where those of fio make files
    random = Random(SEED)
    described = [ours.run(SNIPPETS[module](random)) for _ in range(100)]
    assert not [each for each in described if each.startswith("syntax")]
    assert sum(each.startswith("ok") for each in described) > 40


def test_a_difference_is_found(ours: OurLua) -> None:
    class Other(OurLua):
        def run(self, snippet: str) -> str:
            return super().run(snippet).replace("5", "6")

    assert list(differences(ours, Other(), SEED, 100, ["digest"]))  # type: ignore[arg-type]
