"""The wire, tested byte by byte without sockets, and once against a real Tarantool."""
