"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark_tarantool.report.quantities import is_number, label_of, text_of

_GAP: Final = "\N{NO-BREAK SPACE}"
_WIDEST: Final = 60
"""Longer texts are truncated."""


def text_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lay rows out with aligned columns, numbers to the right.

    Parameters:
        columns: Names; see `text_of` for their units.
        rows: Values, in the columns' order.
    """
    texts = [[_cut(text_of(name, value)) for name, value in zip(columns, row, strict=True)] for row in rows]
    heads = [label_of(name) for name in columns]
    to_right = [any(is_number(row[index]) for row in rows) for index in range(len(columns))]
    widths = [max(map(len, column)) for column in zip(heads, *texts, strict=True)]
    lines = [heads, ["-" * width for width in widths], *texts]
    return "\n".join(
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, to_right, strict=True)
        ).rstrip()
        for line in lines
    )


def _cut(text: str) -> str:
    # Replace control characters, which could move the cursor.
    text = "".join(
        symbol if symbol.isprintable() or symbol == _GAP else "\N{REPLACEMENT CHARACTER}" for symbol in text
    )
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
