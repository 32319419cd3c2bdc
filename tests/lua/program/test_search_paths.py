"""Where `require` looks for modules."""

from __future__ import annotations

import os

import pytest

from tests.lua.program.scripts import Program, comparable

SHOW = "print(package.path) print(package.cpath) print(#package.loaders) print(pcall(require, 'no.such'))"

ROOTS = """
local function try(...) print(pcall(...)) end
local here = package.searchroot()
local function relative(path) return path and path:gsub('^' .. here:gsub('%p', '%%%0'), 'HERE') end
for _, root in ipairs{5, {}, '', 'folder', 'folder/../other', here, '/no/such'} do
    print(select('#', pcall(package.setsearchroot, root)), relative(package.searchroot()))
    print(relative(package.search('inside')), package.search('no.such'))
    for place = 1, 8 do print(place, (select(2, pcall(package.loaders[place], 'no.such')))) end
end
package.setsearchroot()
print(relative(package.searchroot()), package.search())
"""

REQUIRE = """
local function try(...) print(pcall(require, ...)) end
for _, name in ipairs{'wrong', 'wrong', 'loop', 'syntax', 'nothing', 'is_false', 'sets', 'a\\0b', 5, true} do
    try(name)
end
try()
print(unpack(require('names')))
package.preload.here = function(...) return {...} end
print(unpack(require('here')))
package.loaders[1] = 5
try('something')
package.loaders = nil
try('something')
"""

MODULES = {
    "wrong": "error('in a module')",
    "loop": "require('loop')",
    "syntax": "x x",
    "nothing": "",
    "is_false": "return false",
    "sets": "package.loaded.sets = 7",
    "names": "return {...}",
    "folder/inside": "return 'inside'",
    ".rocks/share/tarantool/rock/init": "return 'a rock'",
}


@pytest.fixture(autouse=True)
def _modules(our: Program) -> None:
    for name, text in MODULES.items():
        path = our.folder / f"{name}.lua"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"HOME": "/home/somebody"},
        {"LUA_PATH": "/own/?.lua", "LUA_CPATH": "/own/?.so"},
        {"LUA_PATH": "/own/?.lua;;", "LUA_CPATH": ";;/own/?.so"},
        {"LUA_PATH": "", "LUA_CPATH": ";;"},
        {"LUA_PATH": "/one/?.lua;;/two/?.lua;;/%?.lua"},
    ],
)
def test_paths_are_alike(our: Program, tarantool: Program, variables: dict[str, str]) -> None:
    environment = {**{name: value for name, value in os.environ.items() if name != "HOME"}, **variables}
    ours, theirs = (program.run("-e", SHOW, environment=environment) for program in (our, tarantool))
    assert comparable(ours) == comparable(theirs)


@pytest.mark.real_tarantool
@pytest.mark.parametrize("script", [ROOTS, REQUIRE, "print(require('rock'), package.search('rock'))"])
def test_modules_are_found_alike(our: Program, tarantool: Program, script: str) -> None:
    assert comparable(our.run_script(script)) == comparable(tarantool.run_script(script))


def test_a_module_of_a_user_may_have_the_name_of_a_missing_one(our: Program) -> None:
    (our.folder / "swim.lua").write_text("return 'of a user'")
    assert our.run("-e", "print(require('swim'))").output == "of a user\n"
