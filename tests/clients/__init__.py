"""Real, unmodified Tarantool clients with our server and, for comparison, with a real Tarantool."""
