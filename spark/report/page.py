"""A report page: facts about the input, key figures, charts with captions, tables, notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import Final, NamedTuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from pyspark_tarantool.report.quantities import is_number, label_of, moment, text_of

_ENVIRONMENT: Final = Environment(
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATE: Final = files("pyspark_tarantool.report") / "page.html"


class Level(IntEnum):
    """The importance of a finding; its name is on the page, too, for readers who do not see colors."""

    BAD = 0
    WARNING = 1
    GOOD = 2


_WORDS: Final = {Level.BAD: "act", Level.WARNING: "look", Level.GOOD: "fine"}


class Finding(NamedTuple):
    """A finding.

    Attributes:
        level: Its importance.
        text: One sentence.
    """

    level: Level
    text: str


@dataclass(frozen=True)
class Section:
    """A section of a page: a heading, and notes, charts and tables in the order of addition."""

    title: str
    parts: list[dict[str, object]] = field(default_factory=list)


class Report:
    """A page, filled from top to bottom.

    All texts are escaped, so they may come from the data.

    Parameters:
        title: The title.
        subtitle: A second heading.
    """

    def __init__(self, title: str, subtitle: str = "") -> None:
        self.title = title
        self.subtitle = subtitle
        self._facts: list[tuple[str, str]] = []
        self._figures: list[tuple[str, list[tuple[str, str]]]] = []
        self._sections = [Section("")]
        self._summary = ""
        self._findings: Sequence[Finding] = ()
        self._explanations: dict[str, str] = {}
        self._refresh: int | None = None

    def set_opening(self, summary: str, findings: Sequence[Finding]) -> None:
        """Set the beginning of the page, above the figures.

        Parameters:
            summary: One or two sentences.
            findings: The most important ones.
        """
        self._summary, self._findings = summary, findings

    def refresh_every(self, seconds: int) -> None:
        """Let the browser load the page again.

        Parameters:
            seconds: How often.
        """
        self._refresh = seconds

    def add_explanations(self, explanations: Iterable[tuple[str, str]]) -> None:
        """Explain terms at the end of the page.

        Parameters:
            explanations: A term and a sentence each.
        """
        self._explanations |= dict(explanations)

    def add_facts(self, facts: Iterable[tuple[str, str]]) -> None:
        """Add facts about the input, as names and values, at the top of the page."""
        self._facts += facts

    def add_figures(self, figures: Iterable[tuple[str, object, str]]) -> None:
        """Add key figures.

        Parameters:
            figures: The label, value and unit of each; `s` and `bytes` are converted to suitable units.
        """
        for label, value, unit in figures:
            column = {"s": "_s", "bytes": "_bytes"}.get(unit)
            text = text_of(column or label, value)
            parts = text.split(" ") if column is not None else [text, unit]
            # Of 2 h 5 min, both units are small.
            self._figures.append((label, list(zip_longest(parts[::2], parts[1::2], fillvalue=""))))

    def add_section(self, title: str) -> None:
        """Begin a section with a heading."""
        self._sections.append(Section(title))

    def add_note(self, text: str) -> None:
        """Add a paragraph."""
        self._sections[-1].parts.append({"kind": "note", "text": text})

    def add_chart(self, svg: str, caption: str) -> None:
        """Add a chart.

        Parameters:
            svg: A result of `pyspark_tarantool.report.charts`; it is not escaped.
            caption: The caption.
        """
        self._sections[-1].parts.append({"kind": "chart", "svg": Markup(svg), "caption": caption})

    def add_table(
        self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], note: str = ""
    ) -> None:
        """Add a table.

        Parameters:
            title: The heading.
            columns: Names; the endings `_s` and `_bytes` mark seconds and bytes, shown in suitable units.
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
            summary=self._summary,
            findings=[(each.level.name.lower(), _WORDS[each.level], each.text) for each in self._findings],
            explanations=self._explanations.items(),
            refresh=self._refresh,
            sections=[section for section in self._sections if section.parts],
            made=moment(datetime.now(UTC)),
        )

    def write(self, path: str) -> None:
        """Write the page.

        Parameters:
            path: A local file; an existing one is replaced.

        Raises:
            OSError: If it cannot be written.
        """
        file = Path(path)
        part = file.with_name(f".{file.name}.part")
        part.write_text(self.html(), encoding="utf-8")
        # A browser that loads the page meanwhile has the old one.
        part.replace(file)
