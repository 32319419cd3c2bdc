"""The same conversation with our server and with a real Tarantool: the answers must be the same."""
