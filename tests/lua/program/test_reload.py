"""`package.reload` of the tutorial's chapter "Hot code reloading"."""

from __future__ import annotations

import pytest

from tests.lua.program.scripts import Program

pytestmark = pytest.mark.process

SCRIPT = """\
require('package.reload')
local part = require('part')
print(package.reload.count, part.value, require('json').encode({1}))
if package.reload.count < 3 then
    local file = io.open('part.lua', 'w')
    file:write(('return {value = %d}'):format(package.reload.count * 10))
    file:close()
    package.reload()
end
"""


def test_runs_the_file_again_with_new_modules(our: Program) -> None:
    (our.folder / "part.lua").write_text("return {value = 0}")
    outcome = our.run_script(SCRIPT)
    assert outcome.output.splitlines() == ["1\t0\t[1]", "2\t10\t[1]", "3\t20\t[1]"]


def test_is_for_files_only(our: Program) -> None:
    outcome = our.run("-e", "print(pcall(require, 'package.reload'))")
    assert "package.reload must be required by a file" in outcome.output
