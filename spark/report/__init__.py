"""Reports: self-contained HTML pages with figures, charts and tables, for people who do not use Spark."""

from pyspark_tarantool.report.charts import PALETTE, Series, bars, columns, lines
from pyspark_tarantool.report.page import Finding, Level, Report

__all__ = ["PALETTE", "Finding", "Level", "Report", "Series", "bars", "columns", "lines"]
