"""Tubes: the queue module of github.com/tarantool/queue."""
