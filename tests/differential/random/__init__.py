"""Random requests to a real Tarantool 2.6 and to our server: the answers must be equal, byte for byte.

`make diff GROUP=select REQUESTS=20000 SEED=1` runs any number; the tests here are a short run of each group.
A difference is simplified before it is shown.
"""
