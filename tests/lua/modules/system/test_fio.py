"""The module fio, in an empty directory: examples that a real Tarantool agrees with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lua.modules.alike import described
from tests.lua.snippets import OurLua, TarantoolLua

PREAMBLE = (
    "local fio = require('fio') local function file(flags) return fio.open('file', flags or "
    "{'O_RDWR', 'O_CREAT', 'O_TRUNC'}, 420) end local function text(...) local ok, why = ... "
    "return ok, why and tostring(why) end local function make(path, content) local made = "
    "fio.open(path, {'O_WRONLY', 'O_CREAT'}, 420) made:write(content or 'hello') made:close() end "
)


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            (
                "(function() local f = file() return f:write('hello'), f:seek(0), f:read(2), f:read(), "
                "f:read(), f:close() end)()"
            ),
            'ok true 0 "he" "llo" "" true',
        ),
        (
            (
                "(function() local f = file() f:write('hello') return f:pread(3, 1), f:pwrite('XY', 1), "
                "f:pread(5, 0), f:pread(5, 9) end)()"
            ),
            'ok "ell" true "hXYlo" ""',
        ),
        ("(function() local f = file() f:write(1, 2) f:write('a\\0b') return f:stat().size end)()", "ok 4"),
        (
            (
                "(function() local f = file() f:write('hello') return f:seek(-2, 'SEEK_END'), f:read(1), "
                "f:seek(-1, 'SEEK_CUR'), f:seek(9) end)()"
            ),
            'ok 3 "l" 3 9',
        ),
        (
            (
                "(function() local f = file() f:write('hello') return f:truncate(2), f:stat().size, "
                "f:fsync(), f:fdatasync() end)()"
            ),
            "ok true 2 true true",
        ),
        (
            (
                "(function() local f = file() local buffer = require('ffi').new('char[6]') "
                "f:write('hello') f:seek(0) return f:read(require('ffi').cast('char *', buffer), 3), "
                "require('ffi').string(buffer, 3) end)()"
            ),
            'ok 3 "hel"',
        ),
    ],
)
def test_a_file_is_written_and_read(
    lua: OurLua | TarantoolLua, expression: str, result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert described(lua, f"require('fio').chdir('{tmp_path}') {PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            "(function() make('file') return text(file({'O_CREAT', 'O_EXCL', 'O_RDWR'})) end)()",
            'ok nil "fio: File exists"',
        ),
        (
            (
                "(function() make('file') local f = file({'O_APPEND', 'O_WRONLY'}) f:write('!') return "
                "f:stat().size end)()"
            ),
            "ok 6",
        ),
        ("text(file('O_RDONLY'))", 'ok nil "fio: No such file or directory"'),
        ("file({'O_OTHER'})", 'error "builtin: fio.open(): unknown flag: O_OTHER"'),
        (
            "fio.open('file', {'O_CREAT'}, {'S_IOTHER'})",
            'error "builtin: fio.open(): unknown mode: S_IOTHER"',
        ),
        ("fio.open()", 'error "builtin: Usage: fio.open(path[, flags[, mode]])"'),
        ("fio.open(5)", 'error "builtin: Usage: fio.open(path[, flags[, mode]])"'),
        (
            (
                "(function() fio.open('file', {'O_CREAT'}, {'S_IRUSR', 'S_IWUSR'}) return "
                "fio.stat('file').mode end)()"
            ),
            "ok 33152",
        ),
    ],
)
def test_flags_and_modes(
    lua: OurLua | TarantoolLua, expression: str, result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert described(lua, f"require('fio').chdir('{tmp_path}') {PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            "(function() local f = file() return f:close(), text(f:close()) end)()",
            'ok true false "fio: Bad file descriptor"',
        ),
        (
            "(function() local f = file() f:close() return text(f:read()) end)()",
            'ok nil "fio: Bad file descriptor"',
        ),
        (
            "(function() local f = file() f:close() return f:seek(0), text(f:stat()) end)()",
            'ok -1 nil "fio: Bad file descriptor"',
        ),
    ],
)
def test_a_closed_file(
    lua: OurLua | TarantoolLua, expression: str, result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert described(lua, f"require('fio').chdir('{tmp_path}') {PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("file():seek(0, 'SEEK_OTHER')", 'error "builtin: fio.seek(): unknown whence: SEEK_OTHER"'),
        ("file().read()", "error \"builtin: attempt to index local 'self' (a nil value)\""),
        ("text(file():seek(-1))", "ok -1 nil"),
        ("text(file():truncate(-1))", 'ok false "fio: Invalid argument"'),
    ],
)
def test_wrong_calls_of_methods(
    lua: OurLua | TarantoolLua, expression: str, result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert described(lua, f"require('fio').chdir('{tmp_path}') {PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            ("fio.pathjoin('a', 'b', '/c/'), fio.pathjoin('/', 'a'), fio.pathjoin('a/'), fio.pathjoin()"),
            'ok "a/b/c" "/a" "a" "."',
        ),
        ("fio.pathjoin('a', nil)", 'error "builtin: fio.pathjoin(): undefined path part 2"'),
        ("fio.basename('a/b.lua'), fio.basename('a/b.lua', '.lua'), fio.basename('a/')", 'ok "b.lua" "b" ""'),
        ("fio.dirname('a/b'), fio.dirname('a'), fio.dirname('/')", 'ok "a" "." "/"'),
        ("fio.abspath('/a/../b/./c'), fio.abspath('x') == fio.pathjoin(fio.cwd(), 'x')", 'ok "/b/c" true'),
        ("fio.basename()", 'error "builtin: Usage: fio.basename(path[, suffix])"'),
        ("fio.dirname(5)", 'error "builtin: Usage: fio.dirname(path)"'),
        ("fio.abspath()", 'error "builtin: Usage: fio.abspath(path)"'),
        ("fio.abspath({})", "error \"builtin: bad argument #1 to 'sub' (string expected, got table)\""),
    ],
)
def test_paths_are_texts(
    lua: OurLua | TarantoolLua, expression: str, result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert described(lua, f"require('fio').chdir('{tmp_path}') {PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            "fio.mkdir('d'), fio.path.is_dir('d'), text(fio.mkdir('d'))",
            'ok true true false "fio: File exists"',
        ),
        ("fio.rmdir('no')", 'ok false "fio: No such file or directory"'),
        (
            "fio.mktree('a/b/c'), fio.listdir('a'), fio.rmtree('a'), fio.path.exists('a')",
            'ok true {[1]="b"} true false',
        ),
        (
            "(function() make('f') return fio.mktree('f/x') end)() ~= nil, text(fio.mkdir('no/x'))",
            'ok true false "fio: No such file or directory"',
        ),
        ("fio.listdir('no') == nil, fio.rmtree('no') == nil", "ok true true"),
        ("fio.chdir('no'), fio.chdir('.')", "ok false true"),
        ("type(fio.tempdir())", 'ok "string"'),
        ("fio.mkdir()", 'error "Usage fio.mkdir(pathname[, mode])"'),
        ("fio.mktree()", 'error "builtin: Usage: fio.mktree(path[, mode])"'),
        ("fio.listdir()", 'error "builtin: Usage: fio.listdir(path)"'),
        ("fio.rmtree(5)", 'error "builtin: Usage: fio.rmtree(path)"'),
        ("fio.chdir()", 'error "builtin: Usage: fio.chdir(path)"'),
    ],
)
def test_directories(
    lua: OurLua | TarantoolLua, expression: str, result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert described(lua, f"require('fio').chdir('{tmp_path}') {PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            (
                "(function() make('f') return fio.rename('f', 'g'), fio.path.exists('f'), "
                "fio.unlink('g'), text(fio.unlink('g')) end)()"
            ),
            'ok true false true false "fio: No such file or directory"',
        ),
        (
            (
                "(function() make('f') return fio.link('f', 'g'), fio.symlink('f', 's'), "
                "fio.readlink('s'), fio.stat('f').nlink, fio.path.is_link('s'), fio.path.is_link('f') "
                "end)()"
            ),
            'ok true true "f" 2 true false',
        ),
        (
            (
                "(function() make('f') return fio.truncate('f', 2), fio.stat('f').size, fio.chmod('f', "
                "256), fio.stat('f').mode end)()"
            ),
            "ok true 2 true 33024",
        ),
        (
            (
                "(function() make('f') return fio.utime('f', 1, 2.5), fio.stat('f').atime, "
                "fio.stat('f').mtime end)()"
            ),
            "ok true 1 2.5",
        ),
        ("(function() make('f') return fio.copyfile('f', 'g'), fio.stat('g').size end)()", "ok true 5"),
        (
            (
                "(function() fio.mktree('d/e') make('d/e/f') return fio.copytree('d', 'c'), "
                "fio.path.is_file('c/e/f') end)()"
            ),
            "ok true true",
        ),
        (
            (
                "(function() fio.symlink('no', 's') return fio.path.exists('s'), fio.path.lexists('s'), "
                "fio.lstat('s'):is_link() end)()"
            ),
            "ok false true true",
        ),
        (
            "(function() make('a.lua') make('b.lua') return fio.glob('*.lua'), fio.glob('x*') end)()",
            'ok {[1]="a.lua",[2]="b.lua"} {}',
        ),
        (
            (
                "(function() make('f') local s = fio.stat('f') return s.size, s:is_reg(), s:is_dir(), "
                "s.mode, type(s.inode) end)()"
            ),
            'ok 5 true false 33188 "number"',
        ),
    ],
)
def test_files_by_their_paths(
    lua: OurLua | TarantoolLua, expression: str, result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert described(lua, f"require('fio').chdir('{tmp_path}') {PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("fio.mktree('a\\0b'), fio.path.is_dir('a'), fio.stat('a\\0c'):is_dir()", "ok true true true"),
        (
            "(function() make('f') return fio.rename('f\\0x', 'g\\0y'), fio.path.exists('g') end)()",
            "ok true true",
        ),
        (
            "fio.copyfile('no\\0x', 'y')",
            'ok false "failed to copy no\\000x to y: fio: No such file or directory"',
        ),
    ],
)
def test_a_path_ends_at_its_first_nul(
    lua: OurLua | TarantoolLua, expression: str, result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert described(lua, f"require('fio').chdir('{tmp_path}') {PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("text(fio.stat('no'))", 'ok nil "fio: No such file or directory"'),
        ("text(fio.rename('no', 'x'))", 'ok false "fio: No such file or directory"'),
        ("text(fio.readlink('no'))", 'ok nil "fio: No such file or directory"'),
        ("fio.copyfile('no', 'x')", 'ok false "failed to copy no to x: fio: No such file or directory"'),
        ("fio.copytree('no', 'x')", 'ok false "Directory no does not exist"'),
        ("(function() make('f') return fio.copytree('f', 'x') end)()", 'ok false "Not a directory"'),
        ("text(fio.chmod('no', 0))", 'ok false "fio: No such file or directory"'),
        ("text(fio.truncate('no', 0))", 'ok false "fio: No such file or directory"'),
        (
            (
                "(function() local _, why = fio.open('no') return why.type, why.errno, why.message, "
                "require('errno').strerror(why.errno) end)()"
            ),
            'ok "SystemError" 2 "fio: No such file or directory" "No such file or directory"',
        ),
    ],
)
def test_what_fails_says_why(
    lua: OurLua | TarantoolLua, expression: str, result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert described(lua, f"require('fio').chdir('{tmp_path}') {PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("fio.stat()", 'error "Usage: fio.stat(pathname)"'),
        ("fio.lstat()", 'error "pathname is absent"'),
        ("fio.unlink()", 'error "Usage: fio.unlink(pathname)"'),
        ("fio.rename('x')", 'error "Usage: fio.rename(oldpath, newpath)"'),
        ("fio.link()", 'error "Usage: fio.link(target, linkpath)"'),
        ("fio.symlink('x')", 'error "Usage: fio.symlink(target, linkpath)"'),
        ("fio.readlink()", 'error "Usage: fio.readlink(pathname)"'),
        ("fio.rmdir()", 'error "Usage: fio.rmdir(pathname)"'),
        ("fio.chmod('x')", 'error "Usage: fio.chmod(pathname, mode)"'),
        ("fio.chown('x')", 'error "Usage: fio.chown(pathname, owner, group)"'),
        ("fio.truncate()", 'error "Usage: fio.truncate(pathname[, newlen])"'),
        ("fio.utime()", 'error "builtin: Usage: fio.utime(filepath[, atime[, mtime]])"'),
        ("fio.utime('x', 'y')", 'error "builtin: fio.utime: atime should be a number"'),
        ("fio.glob()", 'error "Usage: fio.glob(pattern)"'),
        ("fio.copyfile('x')", 'error "builtin: Usage: fio.copyfile(from, to)"'),
        ("fio.copytree('x')", 'error "builtin: Usage: fio.copytree(from, to)"'),
        ("fio.umask('x')", "error \"bad argument #1 to '?' (cannot convert 'nil' to 'int')\""),
    ],
)
def test_wrong_arguments(
    lua: OurLua | TarantoolLua, expression: str, result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert described(lua, f"require('fio').chdir('{tmp_path}') {PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            (
                "(function() local before = fio.umask(63) fio.mkdir('d', 511) return fio.umask(before), "
                "fio.stat('d').mode end)()"
            ),
            "ok 63 16832",
        ),
    ],
)
def test_the_mask_of_modes(
    lua: OurLua | TarantoolLua, expression: str, result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert described(lua, f"require('fio').chdir('{tmp_path}') {PREAMBLE}return {expression}") == result
