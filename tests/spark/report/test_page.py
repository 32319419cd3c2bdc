"""Reports: one page that needs nothing else, and in which no text of the data does anything."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

from pyspark_tarantool.report import Report, Series, bars

HOSTILE = """<script>alert(1)</script>"'&<img src=x onerror=alert(1)>-->$x^2$]]>"""


class Tags(HTMLParser):
    """The tags of a page, with their attributes, and its texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def full_page(text: str) -> str:
    """A page with a text at every place where one can be."""
    report = Report(text, text)
    report.add_facts([(text, text)])
    report.add_figures([(text, text, text)])
    report.add_section(text)
    report.add_note(text)
    report.add_chart(bars([text], [Series(text, [1]), Series("other", [2])], text, text), text)
    report.add_table(text, [text], [[text]], text)
    return report.html()


def test_texts_of_the_data_are_harmless() -> None:
    page = Tags(full_page(HOSTILE))
    assert not {tag for tag, _ in page.tags} & {"script", "img", "iframe", "object", "link", "a"}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert page.texts.count(HOSTILE) >= 10


def test_a_page_needs_nothing_else() -> None:
    page = Tags(full_page("mails"))
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            if name in ("src", "href", "xlink:href", "action", "data"):
                assert (value or "").startswith("#"), (tag, name, value)
    html = full_page("mails")
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)
    namespaces = {"http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"}
    assert set(re.findall(r"https?://[^\"'\s<)]+", html)) <= namespaces


def test_values_have_units() -> None:
    report = Report("Backlog")
    figures = [
        ("age", 7322.5, "s"),
        ("wait", 0.25, "s"),
        ("delay", 11.2, "s"),
        ("unknown", None, "s"),
        ("data", 1_250_000, "bytes"),
        ("tasks", 12345, ""),
        ("rate", 1.5, "tasks/s"),
    ]
    report.add_figures(figures)
    page = report.html()
    shown = re.findall(r'<div class="value">(.*?)</div>', page)
    assert [re.sub(r"<[^>]*>", "", value) for value in shown] == [
        "2 h 2 min",
        "250 ms",
        "11.2 s",
        "–",
        "1.25 MB",
        "12\N{NO-BREAK SPACE}345",
        "1.5 tasks/s",
    ]


def test_numbers_in_tables_stand_to_the_right() -> None:
    report = Report("Backlog")
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    report.add_table("Tasks", ["queue", "age_p50_s", "put"], [["mails", 90, moment], ["jobs", None, None]])
    page = report.html()
    assert '<th>queue</th><th class="right">age p50</th><th>put</th>' in page
    assert '<td>mails</td><td class="right">1 min 30 s</td><td>2026-01-31 12:00:00 UTC</td>' in page
    assert '<td>jobs</td><td class="right">–</td><td>–</td>' in page


def test_a_table_without_rows_says_so() -> None:
    report = Report("Backlog")
    report.add_table("Tasks", ["queue"], [])
    assert "No rows." in report.html()


def test_an_empty_report_is_a_page(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    Report("Backlog").write(str(path))
    page = Tags(path.read_text("utf-8"))
    assert "Backlog" in page.texts
    assert "section" not in {tag for tag, _ in page.tags}
