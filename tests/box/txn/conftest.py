"""A box with accounts, which most tests of transactions change."""

from __future__ import annotations

import pytest

from iproto_server import Box, ManualClock, Space
from tests.box.boxes import accounts, new_box


@pytest.fixture
def box_and_clock() -> tuple[Box, ManualClock]:
    return new_box()


@pytest.fixture
def box(box_and_clock: tuple[Box, ManualClock]) -> Box:
    return box_and_clock[0]


@pytest.fixture
def clock(box_and_clock: tuple[Box, ManualClock]) -> ManualClock:
    return box_and_clock[1]


@pytest.fixture
def space(box: Box) -> Space:
    return accounts(box)
