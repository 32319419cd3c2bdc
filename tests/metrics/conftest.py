"""The loops on which the Graphite sender is tested."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest
import uvloop

from tests.metrics.receiver import Run


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Return a function that runs a scenario, on each kind of loop."""

    def start(scenario: Awaitable[None]) -> None:
        async def limited() -> None:
            async with asyncio.timeout(30):
                await scenario

        with asyncio.Runner(
            loop_factory=uvloop.new_event_loop if request.param == "uvloop" else None
        ) as runner:
            runner.run(limited())

    return start
