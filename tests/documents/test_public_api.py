"""The names that applications import from `iproto_server`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import iproto_server

PROCEDURES = Path(__file__).parents[2] / "docs" / "PROCEDURES.md"

IMPORT_ALONE = """
import sys
import iproto_server
print(*sorted(name for name in sys.modules if name.startswith("iproto_server.")))
"""


@pytest.mark.parametrize("name", iproto_server.__all__)
def test_a_public_name_can_be_imported(name: str) -> None:
    assert getattr(iproto_server, name) is not None


@pytest.mark.parametrize("name", iproto_server.__all__)
def test_a_public_name_is_documented(name: str) -> None:
    assert name in PROCEDURES.read_text()


def test_another_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'MemtxSpace'"):
        getattr(iproto_server, "MemtxSpace")  # noqa: B009


def test_importing_the_package_alone_loads_no_submodule() -> None:
    result = subprocess.run([sys.executable, "-c", IMPORT_ALONE], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []
