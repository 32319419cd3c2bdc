"""The part of the build that `pyproject.toml` cannot express: two modules in C.

Where there is no working C compiler or no `Python.h`, they are left out with a warning: the client for
workers needs none of them, and the server says when it starts what is missing.
"""

from __future__ import annotations

import os
import runpy
import shutil
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist
from setuptools.errors import CompileError, LinkError

SERVER, SPARK, CORE = (
    Path("iproto_server/native"),
    Path("pyspark_tarantool/native"),
    Path("iproto_server/engine/core"),
)
FORTIFY = "_FORTIFY_SOURCE"
"""The macro that makes the C library check sizes; it needs optimization."""
DEBIAN_PACKAGES = "gcc libc6-dev python3-dev"
CONSEQUENCE = "without it only the client for workers runs: install this package again for the server"
STRIP = "-Wl,--strip-all"
"""The linker's flag that leaves out symbols."""
LINK_TIME = (["-flto=auto"], ["-flto"])
"""Flags for optimization across files: the first that the compiler takes are used."""

sources = runpy.run_path("iproto_server/compiled_sources.py")
SHARED = [
    SERVER / "values" / "reader.h",
    *(file for room in ("values", "update") for file in sources["sources_in"](CORE / room)),
]
"""Sources of the server that Spark's module uses, too."""


def extension(name: str, folder: Path, *shared: Path) -> Extension:
    files = [*sources["sources_in"](folder), *shared]
    return Extension(
        name,
        [str(file) for file in files if file.suffix == ".c"],
        depends=[str(file) for file in files if file.suffix == ".h"],
        define_macros=[("FINGERPRINT", f'"{sources["fingerprint"](files)}"')],
        extra_compile_args=["-std=c11", "-O3", "-fvisibility=hidden"],
    )


class BuildModules(build_ext):
    """Build all modules, or none where nothing can be compiled."""

    def run(self) -> None:
        # Wheels do without the names of functions, which profilers and sanitizers need.
        # setuptools resets `inplace` while it builds.
        self._has_symbols = bool(self.inplace or self.editable_mode)
        super().run()

    def build_extensions(self) -> None:
        lacking = self._lacking()
        if lacking:
            self.warn(f"{lacking}; {CONSEQUENCE}")
            self.extensions = []
        else:
            self._add_flags()
            self._compile_files_in_parallel()
        super().build_extensions()

    def _lacking(self) -> str | None:
        """Tell why nothing can be compiled here and what to install; None if something can."""
        program = self._command()[0]
        if shutil.which(program) is None:
            return f"there is no C compiler ({program}): install one (Debian: {DEBIAN_PACKAGES})"
        if not self._builds():
            return (
                f"the C compiler ({program}) cannot build a shared library from an empty function: "
                f"install a working one (Debian: {DEBIAN_PACKAGES})"
            )
        folders = [*self.include_dirs, sysconfig.get_path("include"), sysconfig.get_path("platinclude")]
        if not any(Path(folder, "Python.h").exists() for folder in folders):
            return "Python.h is missing: install the headers of this Python (Debian: python3-dev)"
        return None

    def _command(self) -> list[str]:
        """The compiler with the flags of Python and of the environment."""
        return getattr(self.compiler, "compiler_so", None) or ["cc"]

    def _add_flags(self) -> None:
        """Add the flags that depend on the compiler."""
        link_time = next((flags for flags in LINK_TIME if self._builds("-Werror", *flags)), None)
        if link_time is None:
            self.warn("building without link-time optimization, which this compiler does not take")
        is_stripped = not self._has_symbols and self._builds(STRIP)
        is_fortified = any(FORTIFY in word for word in self._command())
        # Python's own flags ask for debugging information, which takes a seventh of the time to compile.
        is_debugged = "-g" in os.environ.get("CFLAGS", "")
        for each in self.extensions:
            if not is_debugged:
                each.extra_compile_args.append("-g0")
            each.extra_compile_args += link_time or []
            each.extra_link_args += [*(link_time or []), *([STRIP] if is_stripped else [])]
            if not is_fortified:
                each.extra_compile_args.append(f"-D{FORTIFY}=2")

    def _compile_files_in_parallel(self) -> None:
        """Start one compiler per processor; setuptools compiles the files of a module one by one."""
        compile_files = self.compiler.compile

        def compile_in_parallel(files: list[str], *arguments: Any, **options: Any) -> list[str]:
            largest_first = sorted(files, key=lambda file: Path(file).stat().st_size, reverse=True)
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                compiled = pool.map(lambda file: compile_files([file], *arguments, **options), largest_first)
                return [each for objects in compiled for each in objects]

        self.compiler.compile = compile_in_parallel

    def _builds(self, *flags: str) -> bool:
        """Whether compiler and linker make a shared library with further flags."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "trial.c")
            source.write_text("#include <stdio.h>\nint trial(void);\nint trial(void) { return 0; }\n")
            try:
                objects = self.compiler.compile([str(source)], output_dir=folder, extra_postargs=[*flags])
                library = str(Path(folder, "trial.so"))
                self.compiler.link_shared_object(objects, library, extra_postargs=[*flags])
            except (CompileError, LinkError):
                return False
        return True


class SourceDistribution(sdist):
    """Keep `pyspark_tarantool`, the name under which `spark/` is installed, a link as in the repository."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        link = Path(base_dir, "pyspark_tarantool")
        link.rename(link.with_name("spark"))
        link.symlink_to("spark")


setup(
    ext_modules=[
        extension("iproto_server.native._native", SERVER, *sources["sources_in"](CORE)),
        extension("pyspark_tarantool.native._native", SPARK, *SHARED),
    ],
    cmdclass={"build_ext": BuildModules, "sdist": SourceDistribution},
)
