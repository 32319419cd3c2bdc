"""HTTP: the dashboard and its API, metrics for Prometheus, health. Imported with `--http` only."""
