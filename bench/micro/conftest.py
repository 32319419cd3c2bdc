"""Metadata of benchmark reports: enough to compare times, and nothing that identifies a machine."""

from __future__ import annotations

import platform


def pytest_benchmark_generate_machine_info() -> dict[str, str]:
    """Return what the times depend on."""
    return {"python": ".".join(platform.python_version_tuple()[:2])}


def pytest_benchmark_generate_commit_info() -> dict[str, str]:
    """Return nothing: a baseline's commit is the one that contains it."""
    return {}
