"""Reports: self-contained HTML pages with figures, charts and tables, for people who do not use Spark."""

from spark.report.charts import PALETTE, Series, bars, columns, lines
from spark.report.page import Report

__all__ = ["PALETTE", "Report", "Series", "bars", "columns", "lines"]
