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


def test_runs_the_file_again_from_another_directory(our: Program) -> None:
    """`box.cfg` has entered `work_dir` since the file was run by a relative path."""
    script = """\
require('package.reload')
print(package.reload.count, require('fio').cwd():match('[^/]*$'))
if package.reload.count == 1 then
    require('fio').mkdir('data')
    box.cfg{work_dir = 'data'}
    package.reload()
    os.exit(0)
end
"""
    outcome = our.run_script(script)
    assert outcome.output.splitlines() == [f"1\t{our.folder.name}", "2\tdata"], outcome.errors


def test_is_for_files_only(our: Program) -> None:
    outcome = our.run("-e", "print(pcall(require, 'package.reload'))")
    assert "package.reload must be required by a file" in outcome.output
