"""A compiled module is used only by the Python code that it was compiled for, and a stale one is reported."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

import iproto_server.native
import pyspark_tarantool.native
from iproto_server.native import PURE_PYTHON
from iproto_server.native.compiled_module import CompiledModule
from iproto_server.native.sources import fingerprint, sources_in
from tests.compiled import needs_compiled_server, needs_compiled_spark
from tests.conftest import StartServer

REPOSITORY: Final = Path(__file__).resolve().parents[2]
SOURCE: Final = "int answer(void) { return 42; }\n"


def upper(text: str) -> str:
    """The Python function of the packages below."""
    return text.upper()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A package with C sources, in a folder where Python looks for packages."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv(PURE_PYTHON, raising=False)
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
        "def take_over(name, python):\n"
        "    return str.upper if name == 'upper' else None\n"
    )


def load(folder: Path, shared: tuple[Path, ...] = ()) -> CompiledModule:
    return CompiledModule(folder.name, folder, 7, shared)


def test_a_current_module_is_used(package: Path) -> None:
    compile_to(package)
    module = load(package)
    assert module.is_compiled
    assert module.twin(upper) is str.upper
    assert module.in_python == {"upper": upper}
    assert module.staleness() is None


def test_an_unknown_twin_is_refused(package: Path) -> None:
    compile_to(package)
    with pytest.raises(LookupError, match="load has no compiled twin"):
        load(package).twin(load)


def test_nothing_is_wrong_where_nothing_was_compiled(package: Path) -> None:
    module = load(package)
    assert not module.is_compiled
    assert module.twin(upper) is upper
    assert module.in_python == {}
    assert module.staleness() is None


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
    assert module.is_compiled
    assert "was compiled from other sources" in (module.staleness() or "")


def test_a_module_of_another_interface_is_not_used(package: Path) -> None:
    compile_to(package, interface=6)
    module = load(package)
    assert not module.is_compiled
    assert module.twin(upper) is upper
    assert "was compiled for another version of the Python code" in (module.staleness() or "")


def test_a_module_for_another_python_is_reported(package: Path) -> None:
    (package / "_native.cpython-27-none.so").touch()
    module = load(package)
    assert not module.is_compiled
    assert "_native.cpython-27-none.so is broken or for another Python" in (module.staleness() or "")


def test_staleness_does_not_matter_in_pure_python(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_to(package, interface=6)
    monkeypatch.setenv(PURE_PYTHON, "1")
    module = load(package)
    assert not module.is_compiled
    assert module.staleness() is None


def test_a_stale_module_is_a_warning(package: Path, caplog: pytest.LogCaptureFixture) -> None:
    compile_to(package)
    load(package).warn_if_stale(logging.getLogger("test"))
    assert caplog.records == []
    compile_to(package, interface=6)
    CompiledModule(package.name, package, 8).warn_if_stale(logging.getLogger("test"))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert f"{package.name}._native is not used" in caplog.text


@needs_compiled_server
def test_the_servers_module_is_current() -> None:
    assert iproto_server.native.module.staleness() is None


@needs_compiled_spark
def test_sparks_module_is_current() -> None:
    assert pyspark_tarantool.native.module.staleness() is None


@needs_compiled_server
def test_the_server_warns_of_a_stale_module_when_it_starts(tmp_path: Path, start_server: StartServer) -> None:
    """A copy of the package stands for a checkout whose C sources were changed after the installation."""
    copy = tmp_path / "iproto_server"
    shutil.copytree(REPOSITORY / copy.name, copy, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {"PYTHONPATH": str(tmp_path)}
    server = start_server(environment=environment)
    server.stop()
    assert "compiled from other sources" not in server.process.output
    with (copy / "native" / "module.c").open("a") as source:
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


def import_zipped(archive: Path, **environment: str) -> list[str]:
    """Import the package from a zip file; tell from where, and whether a compiled module is in use."""
    program = "import iproto_server.native as native; print(native.__file__, native.IS_COMPILED)"
    inherited = {name: value for name, value in os.environ.items() if name != PURE_PYTHON}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**inherited, "PYTHONPATH": str(archive), **environment},
        cwd=archive.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    file, is_compiled = done.stdout.split()
    assert file.startswith(f"{archive}/")
    return [is_compiled, done.stderr]


@needs_compiled_server
def test_a_module_beside_a_zip_file_is_used_by_the_package_in_it(tmp_path: Path) -> None:
    archive = zipped_server(tmp_path)
    assert import_zipped(archive) == ["False", ""]
    shipped = iproto_server.native.module.shipped
    assert shipped is not None
    source, name = shipped
    shutil.copy(source, tmp_path / name)
    assert import_zipped(archive) == ["True", ""]
    assert import_zipped(archive, **{PURE_PYTHON: "1"}) == ["False", ""]


@needs_compiled_server
@pytest.mark.parametrize("content", [b"", b"for another system"])
def test_a_module_of_another_system_beside_a_zip_file_is_left_alone(tmp_path: Path, content: bytes) -> None:
    archive = zipped_server(tmp_path)
    shipped = iproto_server.native.module.shipped
    assert shipped is not None
    (tmp_path / shipped[1]).write_bytes(content)
    assert import_zipped(archive) == ["False", ""]


def test_a_module_that_is_not_in_use_is_not_shipped(package: Path) -> None:
    compile_to(package, interface=8)
    assert load(package).shipped is None
