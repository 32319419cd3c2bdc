"""HTTP requests to a server of ours, and what its metrics say."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from tests.running_server import RunningServer

TIMEOUT = 20
HTTP = ("--http", "127.0.0.1:0")


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A response.

    Args:
        status: The status code.
        headers: The headers, their names in lower case.
        text: The body.
    """

    status: int
    headers: Mapping[str, str]
    text: str


def http_port(server: RunningServer, suffix: str = "HTTP") -> int:
    """The port of an address with that suffix in the log, which is text or JSON."""
    return int(server.process.wait_for(rf"listening on 127\.0\.0\.1:(\d+)(?:, TLS)?, {suffix}(?:\"|$)")[1])


def request(
    port: int,
    path: str,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    body: bytes | None = None,
) -> HttpAnswer:
    """Send a request on a connection of its own."""
    connection = (
        http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        if tls is None
        else http.client.HTTPSConnection("127.0.0.1", port, timeout=TIMEOUT, context=tls)
    )
    try:
        connection.request(method, path, body, headers=dict(headers or {}))
        response = connection.getresponse()
        answered = {name.lower(): value for name, value in response.getheaders()}
        return HttpAnswer(response.status, answered, response.read().decode())
    finally:
        connection.close()


Values = dict[tuple[str, ...], float]


def values(text: str) -> dict[str, Values]:
    """The series of a page by name: values by those of the labels but `alias`, sorted by labels' names."""
    found: dict[str, Values] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(value for name, value in sorted(sample.labels.items()) if name != "alias")
            series = found.setdefault(sample.name, {})
            assert labels not in series, sample
            series[labels] = sample.value
    return found


def metrics(port: int) -> dict[str, Values]:
    """The series of a server."""
    answer = request(port, "/metrics")
    assert answer.status == 200, answer
    return values(answer.text)
