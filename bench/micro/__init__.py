"""Microbenchmarks of the request path, compared with stored baselines."""
