"""Marks for tests of compiled code: skipped where nothing is compiled, but failing in CI."""

from __future__ import annotations

import os
from typing import Final

import pytest

import iproto_server.native
import pyspark_tarantool.native
from iproto_server.native import PURE_PYTHON
from iproto_server.native.compiled_module import CompiledModule
from tests.programs import missing

needs_compiled_server: Final = pytest.mark.usefixtures("compiled_server")
"""Mark a test that needs `iproto_server.native._native`."""

needs_compiled_spark: Final = pytest.mark.usefixtures("compiled_spark")
"""Mark a test that needs `pyspark_tarantool.native._native`."""


@pytest.fixture(scope="session")
def compiled_server() -> None:
    """Skip the test if the server's twins are not compiled; with `CI=true` fail it."""
    _require(iproto_server.native.module)


@pytest.fixture(scope="session")
def compiled_spark() -> None:
    """Skip the test if Spark's kernels are not compiled; with `CI=true` fail it."""
    _require(pyspark_tarantool.native.module)


def _require(module: CompiledModule) -> None:
    if module.is_compiled:
        return
    if os.environ.get(PURE_PYTHON):
        pytest.skip(f"{PURE_PYTHON} is set")
    missing(module.staleness() or f"{module.name} is not compiled: pip install --editable .")
