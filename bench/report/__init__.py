"""Comparison reports: results, tables, charts and goals."""
