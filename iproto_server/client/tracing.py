"""Spans of OpenTelemetry, where the package `opentelemetry` is installed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

try:
    from opentelemetry import propagate, trace
except ImportError:
    propagate = trace = None

_NAME = "iproto_server.client"

logger = logging.getLogger(_NAME)


@contextmanager
def put_span(title: str) -> Iterator[None]:
    """A span around a put.

    Parameters:
        title: the queue.
    """
    if trace is None:
        yield
        return
    with trace.get_tracer(_NAME).start_as_current_span(f"put {title}", kind=trace.SpanKind.PRODUCER):
        yield


def task_span(title: str, task_id: object, data: object, *, linked: bool) -> ExitStack:
    """Begin a span around the handling of a task. What tracing itself raises is
    logged: no task fails for it.

    Parameters:
        title: the queue.
        task_id: the task.
        data: the task's data.
        linked: the data may carry the context of the put.

    Returns: the span, for `close_span`.
    """
    spans = ExitStack()
    if trace is None:
        return spans
    try:
        context = propagate.extract(data) if linked and isinstance(data, dict) else None
        span = trace.get_tracer(_NAME).start_as_current_span(
            f"task {title}",
            context=context,
            kind=trace.SpanKind.CONSUMER,
            attributes={"messaging.message.id": str(task_id)},
        )
        spans.enter_context(span)
    except Exception:
        logger.exception("no span for the task %s", task_id)
    return spans


def close_span(spans: ExitStack, error: BaseException | None) -> None:
    """End the span of a task.

    Parameters:
        spans: the span.
        error: what the handler has raised; None: nothing.
    """
    where = None if error is None else error.__traceback__
    try:
        spans.__exit__(None if error is None else type(error), error, where)
    except Exception as raised:
        if raised is not error:
            logger.exception("the span of a task did not end")


def with_context(data: Any) -> Any:
    """Return a copy with the current context (`traceparent`) of data that is a dict; other data as it is."""
    if propagate is None or not isinstance(data, dict):
        return data
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return {**data, **carrier}
