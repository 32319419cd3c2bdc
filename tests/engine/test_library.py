"""The engine's core as a static library, and the example of its documentation."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.programs import REPOSITORY, require_program

DOCUMENT = REPOSITORY / "docs" / "ENGINE-API.md"
CORE = REPOSITORY / "iproto_server" / "engine" / "core"

pytestmark = pytest.mark.process


def code(language: str) -> str:
    """The first piece of code in a language that the document has."""
    found = re.search(rf"^```{language}\n(.*?)^```$", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, compiled with warnings as errors."""
    directory = tmp_path_factory.mktemp("engine")
    require_program("cc", "gcc")
    command = [
        require_program("make", "make"),
        "engine-library",
        f"ENGINE_LIBRARY={directory}",
        "CFLAGS=-Werror",
    ]
    subprocess.run(command, cwd=REPOSITORY, check=True)
    return directory / "libiproto_engine.a"


def test_the_example_prints_what_the_document_says(library: Path, tmp_path: Path) -> None:
    source, program = tmp_path / "example.c", tmp_path / "example"
    source.write_text(code("c"))
    options = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{CORE}"]
    subprocess.run([require_program("cc", "gcc"), *options, "-o", program, source, library], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout == code("text")


def test_the_library_needs_only_the_c_library(library: Path) -> None:
    listed = subprocess.run(
        [require_program("nm", "binutils"), "--undefined-only", library],
        capture_output=True,
        text=True,
        check=True,
    )
    defined = subprocess.run(
        [require_program("nm", "binutils"), "--defined-only", library],
        capture_output=True,
        text=True,
        check=True,
    )
    needed = set(re.findall(r"^ +U (\w+)$", listed.stdout, re.MULTILINE))
    own = set(re.findall(r"^\w+ \w (\w+)$", defined.stdout, re.MULTILINE))
    assert "iproto_engine_open" in own
    assert [name for name in needed - own if name.startswith(("Py", "_Py"))] == []


def test_every_public_function_is_documented_and_defined(library: Path) -> None:
    header = (CORE / "iproto_engine.h").read_text()
    declared = set(re.findall(r"^IPROTO_API .*?\b(iproto_\w+)\(", header, re.MULTILINE))
    defined = subprocess.run(
        [require_program("nm", "binutils"), "--defined-only", "--extern-only", library],
        capture_output=True,
        text=True,
        check=True,
    )
    exported = set(re.findall(r" T (iproto_\w+)$", defined.stdout, re.MULTILINE))
    assert len(declared) > 40
    assert exported == declared


def test_cpp_takes_the_header(tmp_path: Path) -> None:
    source = tmp_path / "include.cc"
    source.write_text('#include "iproto_engine.h"\nuint32_t version() { return iproto_engine_version(); }\n')
    compiler = require_program("c++", "g++")
    subprocess.run([compiler, "-Wall", "-Werror", f"-I{CORE}", "-fsyntax-only", source], check=True)
