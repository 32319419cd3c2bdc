"""The module pwd."""

from __future__ import annotations

import pytest

from tests.lua.snippets import OurLua, TarantoolLua

KEYS = [
    "",
    "0",
    "'root'",
    "'no such user'",
    "99999",
    "nil",
    "{}",
    "true",
    "-1",
    "'daemon'",
    "1.5",
    "'0'",
    "1e300",
    "0/0",
]


def test_users_have_groups(ours: OurLua) -> None:
    snippet = "local user = require('pwd').getpw('root') return user.id, user.workdir ~= nil, user.group.name"
    assert ours.run(snippet) == 'ok 0 true "root"'


@pytest.mark.real_tarantool
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("function", ["getpw", "getgr"])
def test_users_and_groups_are_alike(ours: OurLua, real: TarantoolLua, function: str, key: str) -> None:
    snippet = f"local r = {{pcall(require('pwd').{function}, {key})}} "
    snippet += "if r[1] then return r[2] end return (r[2]:gsub(':%d+:', ':'))"
    if key not in ("1e300", "0/0"):  # there the number depends on the processor
        assert ours.run(snippet) == real.run(snippet)
    else:
        assert ours.run(snippet) == "ok nil"


@pytest.mark.real_tarantool
def test_lists_of_all_are_alike(ours: OurLua, real: TarantoolLua) -> None:
    snippet = "local pwd = require('pwd') return pwd.getpwall(), pwd.getgrall()"
    assert ours.run(snippet) == real.run(snippet)
