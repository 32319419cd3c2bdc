"""The wheel of the client alone: built without a compiler, complete without the server and its libraries."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

from iproto_server.program_version import PROGRAM_VERSION
from tests.packaging.project import REPOSITORY, pip, run

CLIENT: Final = "packaging/client"

IMPORT: Final = """\
import sys
refused = {"BTrees", "click", "uvloop", "uvicorn", "starlette", "textual", "rich", "zstandard"}
sys.meta_path.insert(0, type("Refuse", (), {"find_spec": staticmethod(
    lambda name, path=None, target=None: sys.exit(f"{name} is imported") if name in refused else None)}))
import iproto_server.client, iproto_server.client.sync
iproto_server.client.Queue("127.0.0.1:3301", "tutorial")
iproto_server.client.sync.Queue("127.0.0.1:3301", "tutorial")
imported = [module for name, module in sys.modules.items() if name.startswith("iproto_server")]
print(*(module.__file__ for module in imported), sep="\\n")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built where the compiler fails."""
    folder = tmp_path_factory.mktemp("client")
    for part in ("iproto_server", CLIENT):
        shutil.copytree(
            REPOSITORY / part, folder / part, ignore=shutil.ignore_patterns("*.so", "build", "*.egg-info")
        )
    done = pip("wheel", "--wheel-dir", folder, folder / CLIENT, CC="false")
    assert done.returncode == 0, done.stderr
    (file,) = folder.glob("*.whl")
    return file


def test_the_wheel_is_for_every_platform(wheel: Path) -> None:
    assert wheel.name == f"iproto_server_client-{PROGRAM_VERSION}-py3-none-any.whl"


def test_the_wheel_has_the_client_and_what_it_imports(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    client = {
        str(file.relative_to(REPOSITORY)) for file in (REPOSITORY / "iproto_server/client").glob("*.py")
    }
    assert client <= names
    assert "iproto_server/py.typed" in names
    assert not [name for name in names if name.startswith(("iproto_server/server", "iproto_server/native"))]


def test_the_client_works_without_the_server_and_its_libraries(wheel: Path, tmp_path: Path) -> None:
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    done = run("env", "-C", "/", sys.executable, "-c", IMPORT, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    files = done.stdout.split()
    assert files
    assert [file for file in files if not Path(file).is_relative_to(tmp_path)] == []
