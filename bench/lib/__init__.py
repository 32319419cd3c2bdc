"""Tools that benchmarks share: processes, tables, calibration."""
