"""The data directory of a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interchange.database.home import Home


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "interchange" in item.path.parts:
            item.add_marker(pytest.mark.real_tarantool)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Provide an unused data directory."""
    directory = tmp_path / "home"
    directory.mkdir()
    return Home(directory)
