"""Real, unmodified Tarantool clients against our server and, as the yardstick, against a real Tarantool."""
