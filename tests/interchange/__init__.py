"""Moving data directories between our server and a real Tarantool, as processes with real clients."""
