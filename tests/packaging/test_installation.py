"""How an installation from source treats compiled modules.

It builds them, fails at an error in them, or leaves them out where nothing can be compiled.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

from tests.packaging.project import REPOSITORY, copy_project, pip, run
from tests.programs import require_program

CORE: Final = "iproto_server/engine/core"
"""Sources that both modules use."""
SOURCES: Final = "iproto_server/compiled_sources.py"
FOLDERS: Final = ("iproto_server/native", "pyspark_tarantool/native")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project, as far as it is about compiled modules."""
    copy = tmp_path / "project"
    copy_project(copy, (*FOLDERS, CORE))
    shutil.copy(REPOSITORY / SOURCES, copy / SOURCES)
    for folder in FOLDERS:
        (copy / folder).with_name("__init__.py").touch()
    return copy


def install(project: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Install the copy into the folder `installed` beside it, and show what the build writes."""
    return pip("install", "-vv", "--target", project.with_name("installed"), project, **environment)


def installed_files(project: Path, *suffixes: str) -> list[str]:
    target = project.with_name("installed")
    return sorted(str(file.relative_to(target)) for file in target.rglob("*") if file.suffix in suffixes)


@pytest.mark.parametrize(
    "source", ["iproto_server/native/transaction/box.c", "pyspark_tarantool/native/arrow_columns.c"]
)
def test_a_compile_error_fails_the_installation(project: Path, source: str) -> None:
    if source.startswith("pyspark"):  # the other module need not be compiled to see it
        for file in (project / FOLDERS[0]).rglob("*.c"):
            file.write_text("")
    (project / source).write_text("#error this file is broken\n")
    done = install(project)
    assert done.returncode != 0
    assert "this file is broken" in done.stderr
    assert CONSEQUENCE not in done.stderr
    assert installed_files(project, ".py", ".so") == []


PACKAGES: Final = "(Debian: gcc libc6-dev python3-dev)"
CONSEQUENCE: Final = "without it only the client for workers runs: install this package again for the server"


def warnings_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The warnings of a build that has left the modules out."""
    assert done.returncode == 0, done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    return [line.strip().removeprefix("warning: BuildModules: ") for line in lines if CONSEQUENCE in line]


def test_without_a_compiler_the_modules_are_left_out_with_a_warning(project: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "no-programs"
    nowhere.mkdir()
    done = install(project, PATH=str(nowhere), CC="cc")
    assert warnings_of(done) == [f"there is no C compiler (cc): install one {PACKAGES}; {CONSEQUENCE}"]
    assert "iproto_server/native/__init__.py" in installed_files(project, ".py")
    assert installed_files(project, ".so", ".c", ".h") == []


def test_with_a_broken_compiler_the_modules_are_left_out_with_a_warning(project: Path) -> None:
    assert warnings_of(install(project, CC="false")) == [
        "the C compiler (false) cannot build a shared library from an empty function: "
        f"install a working one {PACKAGES}; {CONSEQUENCE}"
    ]
    assert installed_files(project, ".so", ".c", ".h") == []


def test_without_headers_of_python_the_modules_are_left_out_with_a_warning(project: Path) -> None:
    require_program("gcc", "gcc")
    setup = project / "setup.py"
    setup.write_text(setup.read_text().replace('"Python.h"', '"AbsentPython.h"'))
    assert warnings_of(install(project)) == [
        f"Python.h is missing: install the headers of this Python (Debian: python3-dev); {CONSEQUENCE}"
    ]
    assert installed_files(project, ".so", ".c", ".h") == []


@pytest.fixture
def small_project(project: Path) -> Path:
    """The copy with modules that are compiled at once."""
    for folder in FOLDERS:
        for file in (project / folder).rglob("*.c"):
            file.write_text("")
    for source in ("iproto_server/native/module/module.c", "pyspark_tarantool/native/module.c"):
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
    commands = [line for line in log.read_text().splitlines() if "/module.c" in line]
    assert len(commands) == 2
    for command in commands:
        assert command.count("_FORTIFY_SOURCE") == 1
        assert "-O3" in command


EDITABLE: Final = "import sys; from setuptools import build_meta; build_meta.build_editable(sys.argv[1])"


def test_an_editable_installation_is_a_path_entry(tmp_path: Path) -> None:
    """Spark's search for data sources lists folders; it does not see packages that an import hook finds."""
    project = tmp_path / "project"
    copy_project(project, ("iproto_server", "queue_lua_compat", "spark", "pyspark_tarantool"))
    command = ("env", "-C", project, sys.executable, "-c", EDITABLE, tmp_path)
    done = run(*command, CC="false")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        (entry,) = (name for name in archive.namelist() if ".dist-info/" not in name)
        assert Path(entry).suffix == ".pth"
        assert archive.read(entry).decode().split() == [str(project)]
    assert (project / "pyspark_tarantool/__init__.py").is_file()
