"""A box with accounts, which most tests of the facades use."""

from __future__ import annotations

import pytest

from iproto_server import Box, Space
from tests.box.boxes import accounts, new_box


@pytest.fixture
def box() -> Box:
    return new_box()[0]


@pytest.fixture
def space(box: Box) -> Space:
    return accounts(box)
