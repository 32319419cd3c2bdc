"""HTTP: metrics for Prometheus, and whether the server is alive and ready. Imported with `--http` only."""
