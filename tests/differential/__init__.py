"""The same requests to our server and to a real Tarantool: the answers must be equal."""
