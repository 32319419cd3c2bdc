"""An application with metrics of its own, and one that disturbs."""

from __future__ import annotations

import asyncio

from iproto_server import Application, Box

app = Application("my-app")
other = Application("jobs")
failing: list[str] = []


@app.procedure("count")
def count(box: Box, reason: str) -> None:
    box.metrics.counter("jobs.failed", "Jobs that failed.", labels=["reason"]).inc(reason=reason)
    box.metrics.histogram("jobs.duration", bounds=[0.5, 5]).observe(1)
    box.metrics.gauge("jobs.open").set(-2.5)


@app.metrics
def told(box: Box) -> dict[str, int | float]:
    if failing:
        raise SystemExit
    return {"answers.given": 42, "ready": 0.5, "jobs-ü": 1}


@other.metrics
def told_elsewhere(box: Box) -> dict[str, int]:
    # The name is that of a metric of the other application.
    return {"open": 7}


@app.procedure("fail")
def fail(box: Box) -> None:
    failing.append("yes")


@app.procedure("wait")
async def wait(box: Box) -> None:
    await asyncio.sleep(60)


@app.procedure("spaces")
def spaces(box: Box, count: int) -> None:
    for number in range(count):
        box.schema.create_space(f"space {number}").create_index("primary")


@app.procedure("strange_spaces")
def strange_spaces(box: Box) -> None:
    for name in ('quoted " name', "back\\slash", "ж"):
        space = box.schema.create_space(name)
        space.create_index("primary")
        space.create_index("second", type="HASH", parts=[1, "string"])
        for number in range(10):
            space.insert([number, "x" * 100 + str(number)])
    box.schema.create_space("without index")
    box.schema.create_space("temporary", temporary=True).create_index("primary")
    box.schema.create_space("_hidden").create_index("primary")
