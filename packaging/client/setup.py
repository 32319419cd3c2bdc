"""The modules of the repository that the client consists of."""

from __future__ import annotations

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PACKAGE = Path(__file__).resolve().parents[2] / "iproto_server"
MODULES = ("__init__", "program_version", "client/*", "config/__init__", "config/address", "config/tls")


class BuildClient(build_py):
    """Copy the client's modules; the other files of their packages stay behind."""

    def run(self) -> None:
        for pattern in MODULES:
            for module in sorted(PACKAGE.glob(f"{pattern}.py")):
                self._copy(module)
        self._copy(PACKAGE / "py.typed")

    def _copy(self, file: Path) -> None:
        target = Path(self.build_lib, file.relative_to(PACKAGE.parent))
        self.mkpath(str(target.parent))
        self.copy_file(str(file), str(target), preserve_mode=False)


setup(
    version=runpy.run_path(str(PACKAGE / "program_version.py"))["PROGRAM_VERSION"],
    packages=["iproto_server"],
    package_dir={"iproto_server": "../../iproto_server"},
    cmdclass={"build_py": BuildClient},
)
