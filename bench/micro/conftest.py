"""What is noted with the times of the pieces: enough to compare them, and nothing of whose machine it was."""

from __future__ import annotations

import platform

from iproto_server import native


def pytest_benchmark_generate_machine_info() -> dict[str, str]:
    """What the times depend on."""
    return {
        "implementation": "compiled" if native.IS_COMPILED else "pure Python",
        "python": ".".join(platform.python_version_tuple()[:2]),
    }


def pytest_benchmark_generate_commit_info() -> dict[str, str]:
    """Nothing: a baseline's commit is the one it is in."""
    return {}
