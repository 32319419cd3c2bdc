"""Reports: self-contained HTML pages with figures, charts and tables, for people who do not use Spark."""

from pyspark_tarantool.report.charts import PALETTE, Series, bars, columns, lines
from pyspark_tarantool.report.page import Report

__all__ = ["PALETTE", "Report", "Series", "bars", "columns", "lines"]
