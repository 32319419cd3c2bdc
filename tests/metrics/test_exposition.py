"""Metrics in the text formats of Prometheus and OpenMetrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from iproto_server import Histogram
from iproto_server.metrics.exposition import (
    OPENMETRICS,
    SLICE,
    TEXT,
    Family,
    Sample,
    TextFormat,
    histogram_samples,
    negotiate,
    render,
)

PROMETHEUS_2_42 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/html", TEXT),
        ("text/plain", TEXT),
        ("application/openmetrics-text", OPENMETRICS),
        ("application/openmetrics-text; version=1.0.0; charset=utf-8", OPENMETRICS),
        ("Application/OpenMetrics-Text;VERSION=1.0.0", OPENMETRICS),
        (PROMETHEUS_2_42, OPENMETRICS),
        ("text/plain;q=0.9,application/openmetrics-text;q=0.5", TEXT),
        ("text/plain;q=0.5,application/openmetrics-text;q=0.5", OPENMETRICS),
        ("application/openmetrics-text;q=0", TEXT),
        ("application/openmetrics-text;q=high", TEXT),
        ("application/openmetrics-text;version=0.0.1", TEXT),
        ("application/openmetrics-text;version=2.0.0", TEXT),
        (";;,,;q=,=", TEXT),
    ],
)
def test_the_format_is_what_the_client_asks_for(accept: str, form: TextFormat) -> None:
    assert negotiate(accept) is form


def page(form: TextFormat, *families: Family, **labels: str) -> str:
    async def all_of_them() -> AsyncIterator[Family]:
        for family in families:
            yield family

    return asyncio.run(render(all_of_them(), form, labels)).decode()


JOBS = Family("jobs", "counter", "Jobs.", [Sample(3, {"state": "done"}), Sample(0.5, {"state": 'a"\\\nb'})])


def test_prometheus() -> None:
    assert page(TEXT, JOBS, alias="one") == (
        "# HELP jobs_total Jobs.\n"
        "# TYPE jobs_total counter\n"
        'jobs_total{alias="one",state="done"} 3.0\n'
        'jobs_total{alias="one",state="a\\"\\\\\\nb"} 0.5\n'
    )


def test_openmetrics() -> None:
    assert page(OPENMETRICS, JOBS) == (
        "# HELP jobs Jobs.\n"
        "# TYPE jobs counter\n"
        'jobs_total{state="done"} 3.0\n'
        'jobs_total{state="a\\"\\\\\\nb"} 0.5\n'
        "# EOF\n"
    )


@pytest.mark.parametrize("form", [TEXT, OPENMETRICS])
def test_nothing(form: TextFormat) -> None:
    empty = Family("jobs", "gauge", "Jobs.", [])
    assert page(form) == page(form, empty) == form.end.decode()


def test_a_histogram_is_cumulated() -> None:
    durations = Histogram([0.5, 10])
    for seconds in (0.1, 0.5, 3, 70):
        durations.observe(seconds)
    family = Family("seconds", "histogram", "Durations.", histogram_samples(durations, {"name": "a"}))
    [parsed] = parse_openmetrics(page(OPENMETRICS, family))  # type: ignore[no-untyped-call]
    assert [(sample.name, sample.labels.get("le"), sample.value) for sample in parsed.samples] == [
        ("seconds_bucket", "0.5", 2.0),
        ("seconds_bucket", "10.0", 3.0),
        ("seconds_bucket", "+Inf", 4.0),
        ("seconds_count", None, 4.0),
        ("seconds_sum", None, 73.6),
    ]


def test_strings_that_are_no_text_are_shown_in_part() -> None:
    [parsed] = parse_text(page(TEXT, Family("jobs", "gauge", "Jobs.", [Sample(1, {"name": "ж\udcff€"})])))
    assert parsed.samples[0].labels == {"name": "ж?€"}


@pytest.mark.parametrize("form", [TEXT, OPENMETRICS])
@pytest.mark.parametrize("count", [SLICE - 1, SLICE, SLICE + 1, 3 * SLICE + 7])
def test_a_long_page_is_written_in_slices(form: TextFormat, count: int) -> None:
    """The loop runs between two slices, and the page is the same as without slices."""
    read: list[int] = []

    def samples() -> Iterator[Sample]:
        for number in range(count):
            read.append(number)
            yield Sample(number, {"number": str(number)})

    async def scenario() -> tuple[str, list[int]]:
        async def families() -> AsyncIterator[Family]:
            yield Family("first", "gauge", "First.", [Sample(1, {})])
            yield Family("numbers", "gauge", "# HELP with signs\n# TYPE", samples())
            yield Family("last", "gauge", "Last.", [Sample(2, {})])

        task = asyncio.ensure_future(render(families(), form, {}))
        progress = []
        while not task.done():
            await asyncio.sleep(0)
            progress.append(len(read))
        return (await task).decode(), progress

    text, progress = asyncio.run(scenario())
    steps = [after - before for before, after in zip([0, *progress], progress, strict=False)]
    assert sum(steps) == count
    assert max(steps) <= SLICE
    parse = parse_text if form is TEXT else parse_openmetrics
    first, numbers, last = parse(text)
    assert [sample.value for sample in (*first.samples, *last.samples)] == [1.0, 2.0]
    assert [sample.labels["number"] for sample in numbers.samples] == [str(number) for number in range(count)]
    assert text.count("# TYPE numbers gauge\n") == 1


@pytest.mark.parametrize(("form", "parse"), [(TEXT, parse_text), (OPENMETRICS, parse_openmetrics)])
@given(value=st.floats(allow_nan=False) | st.integers(-(2**64), 2**64))
def test_numbers_parse_back(form: TextFormat, parse: Any, value: float) -> None:
    """As doubles, which is all that Prometheus stores."""
    text = page(form, Family("depth", "gauge", "Depth.", [Sample(value, {})]))
    assert [sample.value for family in parse(text) for sample in family.samples] == [float(value)]
