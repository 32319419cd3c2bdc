"""A compiled module belongs to the Python code that imports it, and a stale one is reported."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

import iproto_server.native
import pyspark_tarantool.native
from iproto_server.compiled_module import CompiledModule, NotCompiledError
from iproto_server.compiled_sources import fingerprint, sources_in
from tests.conftest import StartServer

REPOSITORY: Final = Path(__file__).resolve().parents[3]
SOURCE: Final = "int answer(void) { return 42; }\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A package with C sources, in a folder where Python looks for packages."""
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / f"package_of_{request.node.name}"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "module.c").write_text(SOURCE)
    return folder


def compile_to(folder: Path, interface: int = 7, shared: tuple[Path, ...] = ()) -> None:
    """Write a module as if it was compiled from the sources as they are now."""
    (folder / "_native.py").write_text(
        f"INTERFACE = {interface}\n"
        f"FINGERPRINT = {fingerprint([*sources_in(folder), *shared])!r}\n"
        "upper = str.upper\n"
    )


def load(folder: Path, shared: tuple[Path, ...] = ()) -> CompiledModule:
    return CompiledModule(folder.name, folder, 7, shared)


def test_a_current_module_is_used(package: Path) -> None:
    compile_to(package)
    module = load(package)
    assert module.loaded.upper is str.upper
    assert module.staleness() is None


def test_an_unknown_function_of_sparks_module_is_refused() -> None:
    with pytest.raises(LookupError, match="load has no compiled twin"):
        pyspark_tarantool.native.twin(load)


def test_an_error_tells_what_to_install_where_nothing_was_compiled(package: Path) -> None:
    here = f"Python {sys.version_info[0]}.{sys.version_info[1]} on {sysconfig.get_platform()}"
    with pytest.raises(NotCompiledError) as raised:
        load(package)
    assert str(raised.value) == (
        f"{package.name}._native is missing: install a wheel for {here}, or a C compiler and Python.h "
        "(Debian: gcc libc6-dev python3-dev) and then the package again"
    )
    assert raised.value.name == f"{package.name}._native"


def test_a_module_without_its_sources_is_current(package: Path) -> None:
    compile_to(package)
    (package / "module.c").unlink()
    assert load(package).staleness() is None


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_module_of_other_sources_is_used_but_stale(package: Path, tmp_path: Path, is_shared: bool) -> None:
    shared = tmp_path / "shared.c"
    shared.write_text(SOURCE)
    compile_to(package, shared=(shared,))
    assert load(package, (shared,)).staleness() is None
    (shared if is_shared else package / "module.c").write_text(SOURCE.replace("42", "43"))
    module = load(package, (shared,))
    assert module.loaded.upper is str.upper
    assert "was compiled from other sources" in (module.staleness() or "")


def test_a_module_of_another_interface_is_refused(package: Path) -> None:
    compile_to(package, interface=6)
    with pytest.raises(NotCompiledError, match="for another version of the Python code: install"):
        load(package)


@pytest.mark.parametrize("name", ["_native.cpython-27-none.so", f"_native{EXTENSION_SUFFIXES[0]}"])
def test_a_broken_module_or_one_for_another_python_is_refused(package: Path, name: str) -> None:
    (package / name).touch()
    with pytest.raises(NotCompiledError, match=rf"{name} is broken or for another Python: install"):
        load(package)


def test_a_stale_module_is_a_warning(package: Path, caplog: pytest.LogCaptureFixture) -> None:
    compile_to(package)
    load(package).warn_if_stale(logging.getLogger("test"))
    assert caplog.records == []
    (package / "module.c").write_text(SOURCE.replace("42", "43"))
    load(package).warn_if_stale(logging.getLogger("test"))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert f"{package.name}._native was compiled from other sources than those in {package}" in caplog.text


def test_the_servers_module_is_current() -> None:
    assert iproto_server.native.module.staleness() is None


def test_sparks_module_is_current() -> None:
    assert pyspark_tarantool.native.module.staleness() is None


def test_the_server_warns_of_a_stale_module_when_it_starts(tmp_path: Path, start_server: StartServer) -> None:
    """A copy of the package stands for a checkout whose C sources were changed after the installation."""
    copy = tmp_path / "iproto_server"
    shutil.copytree(REPOSITORY / copy.name, copy, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {"PYTHONPATH": str(tmp_path)}
    server = start_server(environment=environment)
    server.stop()
    assert "compiled from other sources" not in server.process.output
    with (copy / "native" / "module" / "module.c").open("a") as source:
        source.write("/* changed */\n")
    server = start_server(environment=environment)
    server.stop()
    warnings = [line for line in server.process.output.splitlines() if "compiled from other sources" in line]
    assert len(warnings) == 1
    assert " warn iproto_server.native._native was compiled" in warnings[0]


def zipped_server(directory: Path) -> Path:
    """The package without its compiled module, in a zip file."""
    archive = directory / "packages.zip"
    with ZipFile(archive, "w") as file:
        for path in (REPOSITORY / "iproto_server").rglob("*.py"):
            file.write(path, path.relative_to(REPOSITORY))
    return archive


def import_zipped(archive: Path) -> subprocess.CompletedProcess[str]:
    """Import the package from a zip file, and print where it is and where its compiled module is."""
    program = "import iproto_server.native as native; print(native.__file__, native.module.shipped[0])"
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(archive)},
        cwd=archive.parent,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_package_in_a_zip_file_uses_the_module_beside_it(tmp_path: Path) -> None:
    archive = zipped_server(tmp_path)
    source, name = iproto_server.native.module.shipped
    shutil.copy(source, tmp_path / name)
    done = import_zipped(archive)
    assert done.stderr == ""
    assert done.stdout.split() == [f"{archive}/iproto_server/native/__init__.py", str(tmp_path / name)]


@pytest.mark.parametrize("content", [None, b"", b"for another system"])
def test_a_package_in_a_zip_file_tells_that_its_module_is_missing(
    tmp_path: Path, content: bytes | None
) -> None:
    archive = zipped_server(tmp_path)
    if content is not None:
        (tmp_path / iproto_server.native.module.shipped[1]).write_bytes(content)
    done = import_zipped(archive)
    assert done.returncode == 1
    error = done.stderr.splitlines()[-1]
    assert error.startswith(
        "iproto_server.compiled_module.NotCompiledError: iproto_server.native._native is missing: install"
    )
