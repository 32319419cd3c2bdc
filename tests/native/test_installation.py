"""How an installation treats compiled modules: a compile error fails it, a missing compiler does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from iproto_server.native import PURE_PYTHON
from tests.programs import require_program

REPOSITORY: Final = Path(__file__).resolve().parents[2]
FOLDERS: Final = ("iproto_server/native", "spark/native")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project, as far as it is about compiled modules."""
    copy = tmp_path / "project"
    copy.mkdir()
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, copy)
    for folder in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(REPOSITORY / folder, copy / folder, ignore=ignored)
        (copy / folder).with_name("__init__.py").touch()
    return copy


def install(project: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Install the copy into the folder `installed` beside it."""
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    target = project.with_name("installed")
    inherited = {name: value for name, value in os.environ.items() if name not in ("CC", PURE_PYTHON)}
    return subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(project)],
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def installed_files(project: Path, *suffixes: str) -> list[str]:
    target = project.with_name("installed")
    return sorted(str(file.relative_to(target)) for file in target.rglob("*") if file.suffix in suffixes)


@pytest.mark.parametrize("source", ["iproto_server/native/box.c", "spark/native/arrow_columns.c"])
def test_a_compile_error_fails_the_installation(project: Path, source: str) -> None:
    if source.startswith("spark"):  # the other module need not be compiled to see it
        for file in (project / FOLDERS[0]).glob("*.c"):
            if file.name != "reader.c":
                file.write_text("")
    (project / source).write_text("#error this file is broken\n")
    done = install(project)
    assert done.returncode != 0
    assert "this file is broken" in done.stderr
    assert f"set {PURE_PYTHON}=1 to install without compiled code" in done.stderr
    assert installed_files(project, ".py", ".so") == []


def test_without_a_compiler_the_installation_is_in_pure_python(project: Path, tmp_path: Path) -> None:
    (project / "iproto_server/native/box.c").write_text("#error nobody compiles this\n")
    nowhere = tmp_path / "no-programs"
    nowhere.mkdir()
    done = install(project, PATH=str(nowhere))
    assert done.returncode == 0, done.stderr
    assert "iproto_server/native/compiled_module.py" in installed_files(project, ".py")
    assert installed_files(project, ".so", ".c", ".h") == []


def test_pure_python_can_be_chosen_at_installation(project: Path) -> None:
    (project / "iproto_server/native/box.c").write_text("#error nobody compiles this\n")
    done = install(project, **{PURE_PYTHON: "1"})
    assert done.returncode == 0, done.stderr
    assert installed_files(project, ".so") == []


@pytest.fixture
def small_project(project: Path) -> Path:
    """The copy with modules that are compiled at once."""
    for folder in FOLDERS:
        for file in (project / folder).glob("*.c"):
            file.write_text("")
    for source in ("iproto_server/native/module.c", "spark/native/module.c"):
        (project / source).write_text(MODULE)
    return project


MODULE: Final = """\
#include <Python.h>
#include <stdio.h>
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_native"};
PyMODINIT_FUNC PyInit__native(void) { return PyModule_Create(&definition); }
"""


def compiler(directory: Path, program: str) -> str:
    """A compiler that begins with a line of shell."""
    path = directory / "cc"
    path.write_text(f'#!/bin/sh\n{program}\nexec gcc "$@"\n')
    path.chmod(0o755)
    return str(path)


REFUSES_LINK_TIME: Final = """\
for word; do case $word in -flto*) echo "unrecognized option $word" >&2; exit 1;; esac; done"""


@pytest.mark.slow
def test_a_compiler_without_link_time_optimization_is_used_without(
    small_project: Path, tmp_path: Path
) -> None:
    require_program("gcc", "gcc")
    done = install(small_project, CC=compiler(tmp_path, REFUSES_LINK_TIME))
    assert done.returncode == 0, done.stderr
    assert len(installed_files(small_project, ".so")) == 2


@pytest.mark.slow
@pytest.mark.parametrize("flags", ["", "-D_FORTIFY_SOURCE=3", "-O2 -Wp,-D_FORTIFY_SOURCE=2"])
def test_modules_are_fortified_once(small_project: Path, tmp_path: Path, flags: str) -> None:
    require_program("gcc", "gcc")
    log = tmp_path / "commands"
    done = install(
        small_project,
        CC=compiler(tmp_path, f'echo "$@" >> {log}\nset -- -Werror "$@"'),
        CFLAGS=flags,
    )
    assert done.returncode == 0, done.stderr
    commands = [line for line in log.read_text().splitlines() if "native/module.c" in line]
    assert len(commands) == 2
    for command in commands:
        assert command.count("_FORTIFY_SOURCE") == 1
        assert "-O3" in command
