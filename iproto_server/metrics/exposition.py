"""Metrics in the text formats of Prometheus and OpenMetrics.

Pages are written in slices, between which the event loop runs.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import exposition as openmetrics_exposition
from prometheus_client.registry import Collector

from iproto_server.managed_queue import Histogram

__all__ = [
    "OPENMETRICS",
    "TEXT",
    "Family",
    "Sample",
    "TextFormat",
    "histogram_samples",
    "negotiate",
    "render",
]

SLICE: Final = 100
"""Samples that are written in one iteration of the event loop, in about a millisecond."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A number of a series.

    Parameters:
        value: the number.
        labels: the labels of the series.
        suffix: the end of its name: `_bucket`, `_sum` or `_count` of a histogram.
    """

    value: int | float
    labels: Mapping[str, str]
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """All series of one name.

    Parameters:
        name: the name, a counter's without `_total`.
        kind: "counter", "gauge", "histogram" or "unknown".
        help: what they tell, in a sentence.
        samples: the series; those of one histogram stand together. They are read a slice at a time.
    """

    name: str
    kind: str
    help: str
    samples: Iterable[Sample]


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A text format.

    Parameters:
        content_type: its content type.
        generate: writes metrics.
        end: the last line of a page.
    """

    content_type: str
    generate: Callable[[Collector], bytes]
    end: bytes


TEXT: Final = TextFormat("text/plain; version=0.0.4; charset=utf-8", generate_latest, b"")
OPENMETRICS: Final = TextFormat(
    "application/openmetrics-text; version=1.0.0; charset=utf-8",
    openmetrics_exposition.generate_latest,
    b"# EOF\n",
)


def negotiate(accept: str) -> TextFormat:
    """Choose the format that a client asks for, the plain text of Prometheus by default.

    Parameters:
        accept: the value of the header Accept; "" for none.
    """
    wanted = {OPENMETRICS: 0.0, TEXT: 0.0}
    for part in accept.split(","):
        kind, *given = (piece.strip().lower() for piece in part.split(";"))
        parameters = dict(piece.partition("=")[::2] for piece in given)
        if kind == "application/openmetrics-text" and parameters.get("version", "1.0.0") == "1.0.0":
            form = OPENMETRICS
        elif kind == "text/plain":
            form = TEXT
        else:
            continue
        wanted[form] = max(wanted[form], _quality(parameters.get("q", "1")))
    return OPENMETRICS if wanted[OPENMETRICS] > 0 and wanted[OPENMETRICS] >= wanted[TEXT] else TEXT


def _quality(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0


async def render(families: AsyncIterable[Family], form: TextFormat, labels: Mapping[str, str]) -> bytes:
    """Write a page.

    Parameters:
        families: the metrics; those without samples are left out.
        form: the format.
        labels: labels that all series get.
    """
    pieces: list[bytes] = []
    budget = SLICE
    async for family in families:
        samples = iter(family.samples)
        is_first = True
        while part := list(islice(samples, budget)):
            text = form.generate(_Slice(family, part, labels)).removesuffix(form.end)
            pieces.append(text if is_first else _without_head(text))
            is_first = False
            budget -= len(part)
            if budget == 0:
                budget = SLICE
                await asyncio.sleep(0)
    return b"".join((*pieces, form.end))


def _without_head(text: bytes) -> bytes:
    """Return the lines of a family without those in front of the samples."""
    while text.startswith(b"# "):
        text = text[text.index(b"\n") + 1 :]
    return text


class _Slice(Collector):
    """Some samples of a family, for the library's functions."""

    def __init__(self, family: Family, samples: list[Sample], labels: Mapping[str, str]) -> None:
        self._family = family
        self._samples = samples
        self._labels = labels

    def collect(self) -> Iterator[Metric]:
        family = self._family
        metric = Metric(family.name, family.help or family.name, family.kind)
        end = "_total" if family.kind == "counter" else ""
        for sample in self._samples:
            labels = {name: _clean(value) for name, value in sample.labels.items()}
            metric.add_sample(family.name + end + sample.suffix, {**labels, **self._labels}, sample.value)
        yield metric


def _clean(text: str) -> str:
    """Return a text that UTF-8 can encode; clients' strings may have other bytes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def histogram_samples(histogram: Histogram, labels: Mapping[str, str]) -> Iterator[Sample]:
    """Yield the samples of a histogram, as it is when the first of them is read."""
    counts, total = histogram.cumulated(), histogram.sum
    for bound, count in counts:
        yield Sample(count, {**labels, "le": _bound(bound)}, "_bucket")
    yield Sample(counts[-1][1], labels, "_count")
    yield Sample(total, labels, "_sum")


def _bound(bound: float) -> str:
    """Return the label of an upper bound, which OpenMetrics wants with a decimal point."""
    return "+Inf" if bound == math.inf else repr(float(bound))
