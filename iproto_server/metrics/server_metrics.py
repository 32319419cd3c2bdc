"""The server's counters of limits, log, snapshots and logins, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from iproto_server.metrics.exposition import Family, Sample

_BY_LABEL: Final = {
    "server.requests.": ("requests", "type", "Requests by type"),
    "server.refused.": ("refused", "limit", "Requests and clients that were refused, by limit"),
    "server.connections.refused.": ("connections_refused", "limit", "Refused connections, by limit"),
}
"""Counters that are one family: the beginning of their names, its name, label and text."""

_COUNTERS: Final = {
    "server.checkpoints.failed": ("checkpoints_failed", "Snapshots that failed"),
    "server.checkpoints.taken": ("checkpoints_taken", "Snapshots taken"),
    "server.connections.closed_idle": ("connections_closed_idle", "Connections closed by --idle-timeout"),
    "server.connections.failed_handshakes": ("connections_failed_handshakes", "Failed TLS handshakes"),
    "server.connections.hung_up_while_held": (
        "connections_hung_up_while_held",
        "Connections that ended while they waited for requests in flight",
    ),
    "server.graphite.dropped": ("graphite_dropped", "Samples that Graphite did not take"),
    "server.http.refused": ("http_connections_refused", "Refused HTTP connections"),
    "server.logins.delayed": ("logins_delayed", "Login attempts that were delayed after failed ones"),
    "server.logins.failed": ("logins_failed", "Failed login attempts"),
    "server.unsent.requests_waited": ("unsent_requests_waited", "SELECTs that waited for clients to read"),
    "server.wal.bytes": ("wal_written_bytes", "Bytes written to the log"),
    "server.wal.failures": ("wal_failures", "Failed writes to the log"),
}
_GAUGES: Final = {
    "server.buffered": ("buffered_bytes", "Bytes of unfinished requests"),
    "server.checkpoints.last_duration": (
        "checkpoints_last_duration_seconds",
        "Duration of the last snapshot",
    ),
    "server.checkpoints.last_rows": ("checkpoints_last_rows", "Rows of the last snapshot"),
    "server.closing": ("connections_closing", "Connections that are being closed slowly"),
    "server.unsent": ("unsent_bytes", "Bytes of unread responses"),
    "server.unsent.requests_waiting": ("unsent_requests_waiting", "SELECTs that wait for clients to read"),
    "server.unsent.slow_connections": ("unsent_slow_connections", "Connections with many unread responses"),
}
_ELSEWHERE: Final = frozenset(
    (
        "server.bytes.received",
        "server.bytes.sent",
        "server.connections.accepted",
        "server.connections.current",
        "server.errors",
        "server.memtx.arena_size",
        "server.memtx.items_used",
        "server.requests_in_flight",
        "server.wal.rows",
    )
)
"""Metrics that Tarantool has, too."""


def counter_families(counters: Iterable[tuple[str, int | float]]) -> Iterator[Family]:
    """Yield the metrics.

    Parameters:
        counters: the counters by the names that Graphite has.
    """
    by_label: dict[str, list[Sample]] = {beginning: [] for beginning in _BY_LABEL}
    for name, value in counters:
        beginning = next((each for each in _BY_LABEL if name.startswith(each)), None)
        if beginning is not None:
            label = _BY_LABEL[beginning][1]
            by_label[beginning].append(Sample(value, {label: name.removeprefix(beginning)}))
        elif name not in _ELSEWHERE:
            kind = "gauge" if name in _GAUGES else "counter"
            short, text = _GAUGES[name] if name in _GAUGES else _COUNTERS[name]
            yield Family(f"iproto_server_{short}", kind, text, [Sample(value, {})])
    for beginning, samples in by_label.items():
        short, _, text = _BY_LABEL[beginning]
        yield Family(f"iproto_server_{short}", "counter", text, samples)
