"""Tables as plain text, with numbers aligned to the right, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `str` makes it plain text.

    Attributes:
        title: the line above the table.
        header: the names of the columns; a line break in one creates a second line in plain text.
        rows: the cells of each row.
        texts: the number of text columns, from the left.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1

    def __str__(self) -> str:
        names = [name.split("\n") for name in self.header]
        height = max(map(len, names))
        heads = [[name[line] if line < len(name) else "" for name in names] for line in range(height)]
        widths = [max(map(len, cells)) for cells in zip(*heads, *self.rows, strict=True)]
        lines = [
            _line(row, widths, self.texts) for row in (*heads, ["-" * width for width in widths], *self.rows)
        ]
        return "\n".join([self.title, "", *lines, ""])

    def markdown(self) -> str:
        """Format the table as Markdown, with the title above it."""
        rule = ["---" if column < self.texts else "---:" for column in range(len(self.header))]
        heads = [name.replace("\n", " ") for name in self.header]
        lines = [f"| {' | '.join(row)} |" for row in (heads, rule, *self.rows)]
        return "\n".join([f"{self.title}:", "", *lines, ""])


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 1) -> str:
    """Format a table as plain text; the parameters are the attributes of `Table`."""
    return str(Table(title, header, rows, texts))


def _line(cells: Sequence[str], widths: Sequence[int], texts: int) -> str:
    sized = [
        cell.ljust(width) if column < texts else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(sized).rstrip()
