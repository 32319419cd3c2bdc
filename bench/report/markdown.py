"""A comparison as Markdown, as in docs/PERFORMANCE.md."""

from __future__ import annotations

from collections.abc import Iterator

from bench.report.results import Results
from bench.report.tables import tables


def markdown(results: Results) -> str:
    """Format the goals, all tables, and what was measured with what."""
    *others, goals = tables(results)
    return "\n".join([described(results), "", *(one.markdown() for one in (goals, *others)), *_gaps(results)])


def described(results: Results) -> str:
    """Say in a sentence on which machine and with which Python the figures were measured."""
    machine = results.machine
    if not machine:
        return "Measured on an unknown machine."
    optimized = "built with PGO" if machine["pgo"] else "built without PGO"
    return (
        f"Measured with Python {machine['python']} ({machine['executable']}, {optimized}), "
        f"on {machine['cores']} processors, {machine['system']}."
    )


def _gaps(results: Results) -> Iterator[str]:
    yield from (f"- Not installed: {name}" for name in results.missing)
    yield from (f"- {note}" for note in results.notes)
