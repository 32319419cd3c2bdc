"""Rows as Spark hands them to writers, made without a Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType, StructType


def columns(text: str, **more: DataType) -> StructType:
    """The columns of a table.

    Parameters:
        text: Names and the types' names in PySpark's words: `id long, price decimal(10,2)`.
        more: Columns behind these, of types that have no name.
    """
    schema = StructType()
    for column in text.split(", "):
        name, type_name = column.split()
        schema.add(name, type_name)
    for name, data_type in more.items():
        schema.add(name, data_type)
    return schema


def batch(schema: StructType, rows: Iterable[Sequence[Any]]) -> pyarrow.RecordBatch:
    """Rows of a table."""
    arrow = to_arrow_schema(schema, timezone="UTC")
    given = list(rows)
    arrays = [pyarrow.array([row[number] for row in given], field.type) for number, field in enumerate(arrow)]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=arrow)
