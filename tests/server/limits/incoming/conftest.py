"""Servers with limits of what clients send."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.server.limits.incoming.limited import Limited


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Limited]]:
    with ExitStack() as running:

        def start(**options: Any) -> Limited:
            return running.enter_context(Limited(tmp_path, **options))

        yield start
