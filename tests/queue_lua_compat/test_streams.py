"""A put in a stream's transaction wakes waiting takes when it commits, whenever their waits began."""

from __future__ import annotations

import pytest

from iproto_server.protocol.constants import Key, RequestType
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import QUEUE_APPLICATION
from tests.server.stream import Stream

LEGACY_APPLICATION = "queue_lua_compat.legacy:app"


def arguments_of_put(application: str, delay: float) -> list[object]:
    if application == QUEUE_APPLICATION:
        return ["data", {"delay": delay} if delay else {}]
    return [0, "tube", delay, 0, 0, 0, "data"]


@pytest.mark.parametrize("application", [QUEUE_APPLICATION, LEGACY_APPLICATION])
@pytest.mark.parametrize("delay", [0, 0.05])
def test_who_began_to_wait_before_the_commit_gets_the_task(
    start_server: StartServer, application: str, delay: float
) -> None:
    server = start_server([application])
    arguments = [30] if application == QUEUE_APPLICATION else [0, "tube", 30]
    with IprotoClient.at(server.address) as producer, IprotoClient.at(server.address) as consumer:
        # The timer is set for a moment that is over before the commit.
        assert producer.call("queue.put", *arguments_of_put(application, 0.01)).status == 0
        stream = Stream(producer)
        stream.begin()
        assert stream.call("queue.put", *arguments_of_put(application, delay)).status == 0
        assert consumer.call("queue.take", *arguments).status == 0
        waiting = consumer.send(RequestType.CALL, {Key.FUNCTION_NAME: "queue.take", Key.TUPLE: arguments})
        pinged = consumer.send(RequestType.PING)
        assert consumer.receive().sync == pinged
        assert stream.commit().status == 0
        answer = consumer.receive()
        assert answer.sync == waiting
        assert "data" in repr(answer.data)
