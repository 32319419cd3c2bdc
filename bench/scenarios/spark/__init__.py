"""Scenarios with Spark, which reads files and running servers."""
