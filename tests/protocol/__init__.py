"""The wire protocol, tested by bytes without sockets, and against a real Tarantool."""
