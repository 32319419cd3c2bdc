"""A server that speaks the Tarantool binary protocol: spaces in memory and stored procedures in Python."""
