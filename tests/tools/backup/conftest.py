"""The server that is backed up, and where to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import StartServer
from tests.tools.backup.served import Source


@pytest.fixture
def source(start_server: StartServer, tmp_path: Path) -> Iterator[Source]:
    made = Source(start_server, tmp_path)
    with made.client:
        yield made


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The backup that is to be made."""
    return tmp_path / "backups" / "monday"
