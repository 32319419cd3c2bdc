"""Moving in and out: one directory, our server and a real Tarantool, whole processes, real clients."""
