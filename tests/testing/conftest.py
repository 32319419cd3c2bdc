"""Test suites of others, with the plugin."""

from __future__ import annotations

import pytest

APPLICATION = """
from iproto_server import Application, Box

app = Application("numbers")


@app.setup
def create_schema(box: Box) -> None:
    space = box.schema.create_space("numbers", format=[("number", "unsigned")], if_not_exists=True)
    space.create_index("primary", parts=["number"], if_not_exists=True)


@app.procedure("numbers.add")
def add(box: Box, number: int) -> list[int]:
    print("adding", number)
    box.space.numbers.insert([number])
    return [row[0] for row in box.space.numbers.select()]
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """Somebody's test suite, with an application of its own in `numbers_app.py`."""
    pytester.makeconftest('pytest_plugins = ["iproto_server.testing"]')
    pytester.makeini("[pytest]\npythonpath = .\naddopts = --strict-markers\n")
    pytester.makepyfile(numbers_app=APPLICATION)
    return pytester
