"""The queue module of github.com/tarantool/queue, for a real Tarantool."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.real_tarantool import GUEST_IS_SUPER

CHECKOUT = "TARANTOOL_QUEUE_CHECKOUT"
"""The environment variable that names a checkout of that repository."""


def worlds(ours: str, theirs: str) -> list[Any]:
    """Whom tests ask that ask both: without a checkout there is one only.

    Parameters:
        ours, theirs: how the test calls them.
    """
    marks = pytest.mark.real_tarantool
    return [ours, pytest.param(theirs, marks=marks)] if os.environ.get(CHECKOUT) else [ours]


def tubes_application() -> str:
    """The Lua that makes a Tarantool a server of tubes; without a checkout the test is skipped.

    Returns:
        An application for `RealTarantool`.
    """
    given = os.environ.get(CHECKOUT)
    if not given:
        pytest.skip(f"{CHECKOUT} names no checkout of https://github.com/tarantool/queue")
    checkout = Path(given).resolve()
    if not (checkout / "queue" / "abstract.lua").is_file():
        pytest.fail(f"{CHECKOUT}: {checkout} is no checkout of https://github.com/tarantool/queue")
    return (
        f"package.path = '{checkout}/?.lua;{checkout}/?/init.lua;' .. package.path\n"
        f"{GUEST_IS_SUPER}"
        "queue = require 'queue'"
    )
