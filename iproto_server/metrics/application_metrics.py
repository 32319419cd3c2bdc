"""Metrics of applications, for Prometheus: `box.metrics`, and those of `Application.metrics`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from iproto_server.box.api.instance.metrics import Counter, Gauge, Histogram, LabelValues, Metric, Metrics
from iproto_server.metrics.exposition import Family, Sample, histogram_samples


def defined_families(metrics: Metrics) -> Iterator[Family]:
    """Yield the metrics of `box.metrics`."""
    for metric in metrics:
        yield Family(metric.prometheus_name, metric.kind, metric.help, _samples(metric))


def _samples(metric: Metric) -> Iterator[Sample]:
    if isinstance(metric, Histogram):
        for values, counts in list(metric.series.items()):
            yield from histogram_samples(counts, _labels(metric, values))
    elif isinstance(metric, Counter | Gauge):
        for values, number in list(metric.series.items()):
            yield Sample(number, _labels(metric, values))


def _labels(metric: Metric, values: LabelValues) -> dict[str, str]:
    return dict(zip(metric.labels, values, strict=True))


def application_families(counters: Iterable[tuple[str, str, int | float]]) -> Iterator[Family]:
    """Yield the counters of applications as APPLICATION_NAME.

    Parameters:
        counters: the application's name, the counter's name, and the number.
    """
    for application, name, value in counters:
        text = f"{name} of the application {application}"
        yield Family(prometheus_name(f"{application}_{name}"), "unknown", text, [Sample(value, {})])


def prometheus_name(name: str) -> str:
    """Return a name that Prometheus takes: letters, digits and "_"."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if re.match(r"[A-Za-z_]", plain) else f"_{plain}"
