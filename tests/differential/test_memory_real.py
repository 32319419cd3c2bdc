"""Without memory for more rows, a real Tarantool and our server answer alike."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.differential.both import SUPER_GUEST
from tests.iproto_client import (
    DELETE,
    INSERT,
    KEY,
    OPERATIONS,
    REPLACE,
    SPACE_ID,
    TUPLE,
    UPSERT,
    IprotoClient,
)
from tests.real_tarantool import GUEST_IS_SUPER, RealTarantool
from tests.running_server import RunningServer

TEXT = re.compile(r"Failed to allocate \d+ bytes in slab allocator for memtx_tuple")
SIZE = 500_000


@pytest.fixture(scope="module", params=["ours", "theirs"])
def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IprotoClient]:
    """A client of one of the two, with 64 megabytes."""
    directory = tmp_path_factory.mktemp(request.param)
    if request.param == "ours":
        with (
            RunningServer(directory, [SUPER_GUEST], ["--memtx-memory", "64M"]) as ours,
            IprotoClient.at(ours.address) as client,
        ):
            yield client
    else:
        options = {"memtx_memory": "64 * 1024 * 1024"}
        with (
            RealTarantool(directory, GUEST_IS_SUPER, options) as theirs,
            IprotoClient.at(theirs.address) as client,
        ):
            yield client


@pytest.mark.slow
def test_a_full_server(client: IprotoClient) -> None:
    # Tarantool 2.6 makes them, and cannot encode what the functions return.
    client.call("box.schema.create_space", "rows")
    client.call("box.space.rows:create_index", "primary")
    space = client.space_id("rows")
    row, count = "x" * SIZE, 0
    while (answer := client.request(INSERT, {SPACE_ID: space, TUPLE: [count, row]})).ok:
        count += 1
        assert count < 200
    new = [count, row]
    answers = [
        answer,
        client.request(REPLACE, {SPACE_ID: space, TUPLE: new}),
        client.request(UPSERT, {SPACE_ID: space, TUPLE: new, OPERATIONS: []}),
        client.call("box.space.rows:insert", new),
        client.call("box.space.rows:replace", new),
    ]
    for each in answers:
        code, text = each.failure
        assert code == 2
        assert TEXT.fullmatch(text)
    assert client.call("box.space.rows:len").data == [count]
    for number in range(count):
        assert client.request(DELETE, {SPACE_ID: space, KEY: [number]}).ok
    assert client.request(INSERT, {SPACE_ID: space, TUPLE: [1, row]}).ok


def test_the_limit_cannot_be_lowered(client: IprotoClient) -> None:
    text = "Incorrect value for option 'memtx_memory': cannot decrease memory size at runtime"
    assert client.call("box.cfg", {"memtx_memory": 32 * 1024 * 1024}).failure == (59, text)
    assert client.call("box.cfg", {"memtx_memory": 65 * 1024 * 1024}).ok
    assert client.call("box.slab.info").data[0]["quota_size"] >= 64 * 1024 * 1024
