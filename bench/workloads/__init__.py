"""Workloads that scenarios share: clients, written data, and the results of measurements."""
