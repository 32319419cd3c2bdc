"""Plain-text tables, with numbers aligned to the right."""

from __future__ import annotations

from collections.abc import Sequence


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 1) -> str:
    """Format a table.

    Parameters:
        title: the line above the table.
        header: the names of the columns; a line break in one creates a second line.
        rows: the cells of each row.
        texts: the number of text columns, from the left.
    """
    names = [name.split("\n") for name in header]
    height = max(map(len, names))
    heads = [[name[line] if line < len(name) else "" for name in names] for line in range(height)]
    widths = [max(map(len, cells)) for cells in zip(*heads, *rows, strict=True)]
    lines = [_line(row, widths, texts) for row in (*heads, ["-" * width for width in widths], *rows)]
    return "\n".join([title, "", *lines, ""])


def _line(cells: Sequence[str], widths: Sequence[int], texts: int) -> str:
    sized = [
        cell.ljust(width) if column < texts else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(sized).rstrip()
