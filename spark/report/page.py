"""A page: what was read, key figures, charts with captions, tables, notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Final

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from spark.report.quantities import is_number, label_of, moment, text_of

_ENVIRONMENT: Final = Environment(
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATE: Final = files("spark.report") / "page.html"


@dataclass(frozen=True)
class Section:
    """A part of a page: a heading, and under it notes, charts and tables in the order they were added."""

    title: str
    parts: list[dict[str, object]] = field(default_factory=list)


class Report:
    """A page that is filled from top to bottom, and written.

    All texts are escaped, so they may come from the data.

    Parameters:
        title: What it is about.
        subtitle: One sentence more.
    """

    def __init__(self, title: str, subtitle: str = "") -> None:
        self.title = title
        self.subtitle = subtitle
        self._facts: list[tuple[str, str]] = []
        self._figures: list[tuple[str, str, str]] = []
        self._sections = [Section("")]

    def add_facts(self, facts: Iterable[tuple[str, str]]) -> None:
        """Say what was read: names and values, at the top of the page."""
        self._facts += facts

    def add_figures(self, figures: Iterable[tuple[str, object, str]]) -> None:
        """Show key figures.

        Parameters:
            figures: Of each what it is, its value, and its unit: `s` and `bytes` are shown in a fitting one,
                other words as they are.
        """
        for label, value, unit in figures:
            column = {"s": "_s", "bytes": "_bytes"}.get(unit)
            text = text_of(column or label, value)
            if column is not None:
                # A time of two units, as 2 h 5 min, stays together.
                text, unit = text.split(" ") if text.count(" ") == 1 else (text, "")
            self._figures.append((label, text, unit))

    def add_section(self, title: str) -> None:
        """Begin a part with a heading of its own."""
        self._sections.append(Section(title))

    def add_note(self, text: str) -> None:
        """Say something in plain words."""
        self._sections[-1].parts.append({"kind": "note", "text": text})

    def add_chart(self, svg: str, caption: str) -> None:
        """Show a chart.

        Parameters:
            svg: As `spark.report.charts` makes it; it is not escaped.
            caption: What is to be seen on it.
        """
        self._sections[-1].parts.append({"kind": "chart", "svg": Markup(svg), "caption": caption})

    def add_table(
        self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], note: str = ""
    ) -> None:
        """Show a table.

        Parameters:
            title: What its rows are.
            columns: Names. Those that end in `_s` have seconds and in `_bytes` bytes, shown in fitting units.
            rows: Values, in the columns' order.
            note: A sentence below.
        """
        values = [list(row) for row in rows]
        right = [any(is_number(row[index]) for row in values) for index in range(len(columns))]
        texts = [[text_of(name, value) for name, value in zip(columns, row, strict=True)] for row in values]
        heads = [(label_of(name), to_right) for name, to_right in zip(columns, right, strict=True)]
        self._sections[-1].parts.append(
            {"kind": "table", "title": title, "heads": heads, "rows": texts, "note": note}
        )

    def html(self) -> str:
        """The page."""
        return _ENVIRONMENT.from_string(_TEMPLATE.read_text("utf-8")).render(
            title=self.title,
            subtitle=self.subtitle,
            facts=self._facts,
            figures=self._figures,
            sections=[section for section in self._sections if section.parts],
            made=moment(datetime.now(UTC)),
        )

    def write(self, path: str) -> None:
        """Write the page.

        Parameters:
            path: A file of the local filesystem; what is there is replaced.

        Raises:
            OSError: If it cannot be written.
        """
        Path(path).write_text(self.html(), encoding="utf-8")
