"""Spans, with a stand-in for the API of `opentelemetry`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from iproto_server.client import Queue, tracing
from iproto_server.client.sync import Queue as SyncQueue
from tests.client.support import run, tutorial
from tests.conftest import StartServer


class Spans:
    """What the client uses of `opentelemetry.trace` and `opentelemetry.propagate`."""

    SpanKind = SimpleNamespace(PRODUCER="producer", CONSUMER="consumer")

    def __init__(self) -> None:
        self.ended: list[tuple[str, str, object, str | None]] = []

    def get_tracer(self, name: str) -> Spans:
        return self

    @contextmanager
    def start_as_current_span(
        self, name: str, *, kind: str, context: object = None, attributes: object = None
    ) -> Iterator[None]:
        error = None
        try:
            yield
        except RuntimeError as raised:
            error = str(raised)
            raise
        finally:
            self.ended.append((name, kind, context, error))

    def inject(self, carrier: dict[str, str]) -> None:
        carrier["traceparent"] = "00-trace-span-01"

    def extract(self, carrier: dict[str, Any]) -> object:
        return carrier.get("traceparent")


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    """Spans that the client makes from now on."""
    found = Spans()
    monkeypatch.setattr(tracing, "trace", found)
    monkeypatch.setattr(tracing, "propagate", found)
    return found


TRACE = "00-trace-span-01"
PUT = ("put the tutorial's queue", "producer", None, None)
TASK = "task the tutorial's queue"


def test_a_trace_is_carried_in_the_data_if_asked_for(start_server: StartServer, spans: Spans) -> None:
    server = tutorial(start_server)

    async def main() -> None:
        async with Queue(server.address, "tutorial", propagate=True) as queue:
            data = {"to": "ann"}
            await queue.put(data)
            await queue.put("no dict")
            assert data == {"to": "ann"}
            async with queue.consume() as consumer:
                async with await anext(consumer) as task:
                    assert task.data == {"to": "ann", "traceparent": TRACE}
                async with await anext(consumer) as task:
                    raise RuntimeError("it went wrong")

    run(main)
    assert spans.ended == [
        PUT,
        PUT,
        (TASK, "consumer", TRACE, None),
        (TASK, "consumer", None, "it went wrong"),
    ]


def test_data_is_left_alone_otherwise(start_server: StartServer, spans: Spans) -> None:
    server = tutorial(start_server)
    with SyncQueue(server.address, "tutorial") as queue:
        queue.put({"to": "ann", "traceparent": "of somebody else"})
        for task in queue.consume(timeout=0):
            with task:
                assert task.data == {"to": "ann", "traceparent": "of somebody else"}
    assert spans.ended == [PUT, (TASK, "consumer", None, None)]


def test_without_the_package_there_are_no_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "trace", None)
    monkeypatch.setattr(tracing, "propagate", None)
    with tracing.put_span("a queue"), tracing.task_span("a queue", 1, {}, linked=True):
        assert tracing.with_context({"a": 1}) == {"a": 1}
