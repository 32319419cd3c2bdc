"""Benchmarks. All published figures come from here; tests assert no speed.

`python -m bench` compares the server with others. `peers` starts the servers and encodes their requests,
`client` generates load, with its hot loop in C in `native`, `scenarios` has one measurement per module,
`workloads` what scenarios share, `report` prints and draws the results, `micro` measures single functions,
and `lib` is shared by all.
Scenarios with a `main` also run by themselves.
"""
