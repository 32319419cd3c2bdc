"""Tests of `examples/short_links.py` with the pytest plugin.

pytest examples/testing
"""

from __future__ import annotations

import pytest

from iproto_server.testing import IprotoServer

pytestmark = pytest.mark.iproto_server(apps=["examples.short_links:app"])


def test_a_link_survives_a_restart(iproto_server: IprotoServer) -> None:
    connection = iproto_server.connect()
    [link_id] = connection.call("links.add", ["https://example.org/"]).data
    iproto_server.restart()
    assert connection.call("links.visit", [link_id]).data == ["https://example.org/"]


def test_a_link_is_stored_once(iproto_server: IprotoServer) -> None:
    connection = iproto_server.connect()
    first = connection.call("links.add", ["https://example.org/"]).data
    assert connection.call("links.add", ["https://example.org/"]).data == first
    assert connection.call("links.add", ["https://example.org/other"]).data != first


def test_the_most_visited_link_comes_first(iproto_server: IprotoServer) -> None:
    connection = iproto_server.connect()
    [seldom] = connection.call("links.add", ["https://example.org/seldom"]).data
    [often] = connection.call("links.add", ["https://example.org/often"]).data
    for link_id in (often, seldom, often):
        connection.call("links.visit", [link_id])
    assert [row[0] for row in connection.call("links.top", [2]).data[0]] == [often, seldom]
