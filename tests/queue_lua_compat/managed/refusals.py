"""The errors of operators' calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import BoxError, TaskState

NOW = 1_600_000_000.0

READY, TAKEN, DELAYED = TaskState.READY, TaskState.TAKEN, TaskState.DELAYED
BURIED, DONE = TaskState.BURIED, TaskState.DONE


def refused(function: Callable[..., object], *arguments: Any) -> str:
    """Return the text of an action's error."""
    with pytest.raises(BoxError) as raised:
        function(*arguments)
    return raised.value.message
