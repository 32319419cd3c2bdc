"""Random requests, asked of a real Tarantool 2.6 and of our server: the same answers, byte for byte.

`make diff GROUP=select REQUESTS=20000 SEED=1` goes on for as long as asked; the tests here are a short run
of each group. A difference is made as small as it gets before it is shown.
"""
