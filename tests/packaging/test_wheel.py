"""A wheel built from the source distribution: what is in it, and that it works where there is no compiler."""

from __future__ import annotations

import json
import sys
import sysconfig
import tarfile
import tomllib
import venv
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

import pytest

import iproto_server
from iproto_server.program_version import PROGRAM_VERSION
from tests.packaging.project import OFFLINE, REPOSITORY, copy_project, pip, run
from tests.programs import require_program

PACKAGES: Final = ("iproto_server", "queue_lua_compat", "pyspark_tarantool")
REPOSITORY_ONLY: Final = ("bench", "docs", "examples", "packaging", "spark", "tests", "tools")
"""Folders of the source distribution that are not installed, or under another name."""
MODULES: Final = ("iproto_server/native/_native", "pyspark_tarantool/native/_native")

BUILD_SDIST: Final = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution of this working tree."""
    folder = tmp_path_factory.mktemp("sdist")
    project = folder / "project"
    copy_project(project, (*PACKAGES, *REPOSITORY_ONLY))
    done = run("env", "-C", project, sys.executable, "-c", BUILD_SDIST, folder)
    assert done.returncode == 0, done.stderr
    (file,) = folder.glob("*.tar.gz")
    return file


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this platform, built from the source distribution alone."""
    require_program("gcc", "gcc")
    folder = tmp_path_factory.mktemp("wheel")
    done = pip("wheel", "--wheel-dir", folder, sdist)
    assert done.returncode == 0, done.stderr
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="session")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of a virtual environment with the wheel, and with this Python's third-party libraries."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    program = folder / "bin/python"
    packages = Path(run(program, "-c", "import site; print(site.getsitepackages()[0])").stdout.strip())
    done = run(sys.executable, "-m", "pip", "--python", program, "install", *OFFLINE, wheel)
    assert done.returncode == 0, done.stderr
    # Directories named here follow those of the environment, and path files in them are not read: the
    # libraries are found, and an editable installation of this project is not.
    folders = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    (packages / "libraries.pth").write_text("\n".join(sorted(folders)))
    return program


def metadata(wheel: Path, name: str) -> Message:
    with ZipFile(wheel) as archive:
        (path,) = [each for each in archive.namelist() if each.endswith(f".dist-info/{name}")]
        return Parser().parsestr(archive.read(path).decode())


def names_in(wheel: Path) -> list[str]:
    with ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_is_for_this_platform_with_both_modules(wheel: Path) -> None:
    python_tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name.split("-")[2:] == [python_tag, python_tag, f"{platform}.whl"]
    assert metadata(wheel, "WHEEL")["Root-Is-Purelib"] == "false"
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    assert {name for name in names_in(wheel) if name.endswith(".so")} == {name + suffix for name in MODULES}


def test_the_wheel_has_the_files_of_the_packages_without_sources_in_c_and_tests(wheel: Path) -> None:
    suffixes = {
        ".py",
        ".pyi",
        ".json",
        ".yml",
        ".html",
        ".typed",
        ".properties",
        ".js",
        ".lua",
        ".css",
        ".svg",
        ".LICENSE",
    }
    expected = {
        str(file.relative_to(REPOSITORY))
        for package in PACKAGES
        for file in (REPOSITORY / package).rglob("*")
        if file.suffix in suffixes or file.name == "py.typed"
    }
    modules = {name for name in names_in(wheel) if name.endswith(".so")}
    installed = {name for name in names_in(wheel) if ".dist-info/" not in name}
    assert installed - modules == expected


def test_the_wheel_states_what_it_needs(wheel: Path) -> None:
    project: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    stated = metadata(wheel, "METADATA")
    assert stated["Name"] == project["name"]
    assert stated["Version"] == PROGRAM_VERSION
    assert stated["Summary"] == project["description"]
    assert stated["Requires-Python"] == project["requires-python"]
    assert stated["License-Expression"] == project["license"]
    assert stated["Description-Content-Type"] == "text/markdown"
    needed = [each for each in stated.get_all("Requires-Dist", []) if "extra ==" not in each]
    assert sorted(needed) == sorted(project["dependencies"])
    assert set(stated.get_all("Provides-Extra", [])) == set(project["optional-dependencies"])
    assert any(name.endswith("/licenses/LICENSE") for name in names_in(wheel))


def test_the_source_distribution_has_the_sources_in_c(sdist: Path) -> None:
    folders = ("bench/native", "iproto_server/native", "iproto_server/engine/core", "spark/native")
    expected = {
        str(file.relative_to(REPOSITORY))
        for folder in folders
        for file in (REPOSITORY / folder).rglob("*")
        if file.suffix in (".c", ".h")
    }
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        name for name in names if name.endswith((".c", ".h")) and not name.startswith("tests")
    } == expected


def test_the_source_distribution_runs_its_own_tests(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    with ZipFile(wheel) as built:
        built.extractall(folder, [name for name in built.namelist() if name.endswith(".so")])
    assert {file.name for file in folder.iterdir()} >= {*REPOSITORY_ONLY, "Makefile", "CHANGELOG.md"}
    arguments = ("-q", "-p", "no:cacheprovider", "tests/codec", "tests/test_document_rules.py")
    done = run("env", "-C", folder, sys.executable, "-m", "pytest", *arguments)
    assert done.returncode == 0, done.stdout


def test_the_modules_have_no_symbols_for_debuggers(wheel: Path, tmp_path: Path) -> None:
    readelf = require_program("readelf", "binutils")
    with ZipFile(wheel) as archive:
        for name in (each for each in archive.namelist() if each.endswith(".so")):
            sections = run(readelf, "--sections", archive.extract(name, tmp_path)).stdout
            assert ".dynsym" in sections
            assert ".symtab" not in sections
            assert ".debug_info" not in sections


def test_every_package_tells_that_it_is_typed(wheel: Path) -> None:
    assert {name for name in names_in(wheel) if name.endswith("py.typed")} == {
        f"{package}/py.typed" for package in PACKAGES
    }


def test_the_package_tells_its_version() -> None:
    assert iproto_server.__version__ == PROGRAM_VERSION


SERVE: Final = """\
import json, sys
from pathlib import Path
import iproto_server.native
from iproto_server.testing import IprotoServer

with IprotoServer(Path(sys.argv[1]), apps="queue_lua_compat.tutorial:app") as server:
    connection = server.connect()
    def call(name, *arguments):
        return connection.call(name, *arguments).data
    put = call("queue.put", {"work": 1})
    taken = call("queue.take", 1)
    acknowledged = call("queue.ack", put[0]["id"])
    empty = call("queue.take", 0)
tasks = {"put": put, "taken": taken, "acknowledged": acknowledged, "empty": empty}
print(json.dumps([str(iproto_server.native.module.shipped[0]), tasks]))
"""


def outside(python: Path, folder: Path, *arguments: str | Path) -> str:
    """Run Python in a folder without the project, where no program is found but those of the environment."""
    done = run("/usr/bin/env", "-C", folder, python, *arguments, PATH=str(python.parent))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_installed_queue_works_without_a_compiler(python: Path, tmp_path: Path) -> None:
    written = outside(python, tmp_path, "-c", SERVE, tmp_path / "data")
    file, tasks = json.loads(written)
    assert Path(file).is_relative_to(python.parent.parent)
    (task,) = tasks["put"]
    assert (task["status"], task["data"]) == ("R", {"work": 1})
    assert tasks["taken"] == [{**task, "status": "T"}]
    assert tasks["acknowledged"][0]["id"] == task["id"]
    assert tasks["empty"] == []


def test_the_installed_command_tells_its_version(python: Path, tmp_path: Path) -> None:
    version = outside(python, tmp_path, python.with_name("iproto-server"), "--version")
    assert version == f"iproto-server {PROGRAM_VERSION}\n"


def test_the_installed_spark_source_is_importable(python: Path, tmp_path: Path) -> None:
    program = (
        "import pyspark_tarantool.data_source as source, pyspark_tarantool.session;"
        "import pyspark_tarantool.native as native;"
        "print(source.__file__, native.module.staleness())"
    )
    file, staleness = outside(python, tmp_path, "-c", program).split()
    assert Path(file).is_relative_to(python.parent.parent)
    assert staleness == "None"
