"""Random snippets of Lua that use files below the current directory."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

PATHS = ("a", "b", "c", "d", "d/e", "d/e/f", "d/g", "h/i", "missing/x", "", "a/", "d/", "./a", "d//g", "l")
"""Paths of files and directories that snippets make, or of nothing."""
ODD_PATHS = ("a\\0b", "d/../a", "\\255", "x" * 300)

JUNK = ("nil", "1", "true", "{}", "''", "print")
WORDS = "one", "longer text", "", "x", "\\0\\255\\n"


def _path(random: Random) -> str:
    chance = random.random()
    if chance < 0.03:
        return random.choice(JUNK)
    return f"'{random.choice(PATHS if chance < 0.97 else ODD_PATHS)}'"


def _target(random: Random) -> str:
    """A path that is not the current directory."""
    return f"'{random.choice([path for path in PATHS if path])}'"


def _mode(random: Random) -> str:
    return str(random.choice((0o755, 0o700, 0o644, 0o600, 0o777)))


_ACCESS = ("O_RDONLY", "O_WRONLY", "O_RDWR")
_OTHER_FLAGS = ("O_CREAT", "O_TRUNC", "O_APPEND", "O_EXCL", "O_DIRECTORY", "O_OTHER")


def _flags(random: Random) -> str:
    chosen = random.sample(_ACCESS + _OTHER_FLAGS, random.choice((0, 1, 2, 2, 3)))
    if random.random() < 0.6:
        chosen = ["O_RDWR", "O_CREAT", *(each for each in chosen if each in ("O_TRUNC", "O_APPEND"))]
    if len(chosen) == 1:
        return random.choice(("", f", '{chosen[0]}'"))
    return f", {{{', '.join(map(repr, chosen))}}}"


def _open(random: Random) -> str:
    mode = f", {_mode(random)}"
    if random.random() > 0.9:
        mode = random.choice(("", ", {'S_IRUSR', 'S_IWUSR'}", ", 'other'"))
    flags = _flags(random)
    return f"fio.open({_path(random)}{flags}{mode if flags else ''})"


def _size(random: Random) -> str:
    return str(random.choice((0, 1, 2, 3, 5, 100, 1.5)))


def _offset(random: Random) -> str:
    return random.choice(("0", "1", "2", "7", "-1", "-3", "nil", "'2'", "1.5", "{}"))


def _word(random: Random) -> str:
    return f"'{random.choice(WORDS)}'" if random.random() < 0.9 else random.choice(("12", "true", "1.5"))


_WHENCE = (
    *("", ", 'SEEK_SET'", ", 'SEEK_CUR'", ", 'SEEK_END'", ", 'SEEK_OTHER'"),
    *(", 2", ", nil", ", 9", ", {}"),
)


def _method(random: Random) -> str:
    calls = (
        "read()",
        f"read({_size(random)})",
        f"pread({_size(random)}, {_offset(random)})",
        f"write({_word(random)})",
        f"write({_word(random)})",
        f"pwrite({_word(random)}, {_offset(random)})",
        f"seek({_offset(random)}{random.choice(_WHENCE)})",
        f"truncate({_offset(random)})",
        "fsync()",
        "fdatasync()",
        "stat().size",
        "stat():is_reg()",
        "close()",
    )
    return f"file:{random.choice(calls)}"


def _copyfile(random: Random) -> str:
    """A copy, never of a file onto itself: there Tarantool does not return."""
    source, target = _target(random), random.choice(("copy", "d/copy", "no/copy"))
    return f"fio.path.is_file({source}) and fio.copyfile({source}, '{target}')"


def _copytree(random: Random) -> str:
    return f"fio.copytree({_path(random)}, '{random.choice(('copies', 'copies/d', 'a', 'd/copies/e'))}')"


_PATTERNS = ("*", "d/*", "[ab]", "?", "d*/", "*/*", "none*", ".*", "{a,b}")
_OWNERS = ("0", "'root'", "'nobody-here'")
_TIMES = ("0", "1", "1.5", "2.25", "12345")
_QUESTIONS = ("exists", "is_dir", "is_file", "is_link", "lexists")
_CALLS: tuple[Callable[[Random], str], ...] = (
    lambda random: f"fio.mkdir({_path(random)}{random.choice(('', ', ' + _mode(random)))})",
    lambda random: f"fio.mktree({_target(random)}{random.choice(('', ', ' + _mode(random)))})",
    lambda random: f"fio.rmdir({_path(random)})",
    lambda random: f"fio.rmtree({_target(random)})",
    lambda random: f"sorted(fio.listdir({_path(random)}))",
    lambda random: "sorted(fio.listdir('.'))",
    lambda random: f"fio.glob('{random.choice(_PATTERNS)}')",
    lambda random: f"fio.unlink({_path(random)})",
    lambda random: f"fio.rename({_path(random)}, {_path(random)})",
    lambda random: f"fio.link({_path(random)}, {_path(random)})",
    lambda random: f"fio.symlink({_path(random)}, {_path(random)})",
    lambda random: f"fio.readlink({_path(random)})",
    lambda random: f"fio.chmod({_path(random)}, {_mode(random)})",
    lambda random: f"fio.chown({_path(random)}, {random.choice(_OWNERS)}, 0)",
    lambda random: f"fio.truncate({_path(random)}, {_offset(random)})",
    _copytree,
    _copyfile,
    lambda random: f"fio.utime({_path(random)}, {random.choice(_TIMES)}, {random.choice(_TIMES)})",
    lambda random: f"fio.path.{random.choice(_QUESTIONS)}({_path(random)})",
    lambda random: f"fio.stat({_path(random)}) ~= nil",
    lambda random: f"(fio.stat({_path(random)}) or {{}}).{random.choice(('mode', 'size', 'nlink', 'uid'))}",
    lambda random: f"(fio.lstat({_path(random)}) or {{}}).size",
    lambda random: f"fio.abspath({_path(random)})",
    lambda random: f"fio.dirname({_path(random)})",
    lambda random: f"fio.basename({_target(random)}{random.choice(('', ', ' + _target(random)))})",
    lambda random: f"fio.pathjoin({', '.join(_path(random) for _ in range(random.randint(0, 4)))})",
    lambda random: f"fio.umask({random.choice(('', '18', '63'))})",
)

_HEAD = """local fio = require('fio')
local file, results = nil, {}
local function sorted(names, why)
    if names then table.sort(names) end
    return names, why
end
local function make(path)
    local made = fio.open(path, {'O_CREAT', 'O_WRONLY'}, 420)
    made:write('hello')
    made:close()
end
local function note(ok, ...)
    local texts = {tostring(ok)}
    for place = 1, select('#', ...) do
        local value = select(place, ...)
        local is_list = type(value) == 'table' and not value.message
        texts[#texts + 1] = is_list and '{' .. table.concat(value, ',') .. '}' or tostring(value)
    end
    results[#results + 1] = table.concat(texts, ' ')
end
"""


def files_snippet(random: Random) -> str:
    """A chunk that makes some files, calls functions and methods, and returns what they returned."""
    lines = ["fio.umask(18)"]
    for path in random.sample(("a", "b", "d/g"), 2):
        if "/" in path:
            lines.append("fio.mktree('d/e')")
        lines.append(f"make('{path}')")
    for _ in range(random.randint(1, 8)):
        if random.random() < 0.4:
            lines.append(f"note(pcall(function() file = {_open(random)}; return file ~= nil end))")
            lines += (
                f"note(pcall(function() return {_method(random)} end))" for _ in range(random.randint(1, 5))
            )
        else:
            lines.append(f"note(pcall(function() return {random.choice(_CALLS)(random)} end))")
    return _HEAD + "\n".join(lines) + "\nif file then file:close() end\nfio.umask(18)\nreturn results"
