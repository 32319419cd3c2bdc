"""Test suites of other projects, run with `iproto-tarantool` and with a real Tarantool as their `tarantool`.

The suites are read from checkouts outside this repository, which environment variables name; see `SUITES` in
`tests.suites.catalogue`, and [the guide](../../CONTRIBUTING.md#test-suites-of-other-projects).
"""
