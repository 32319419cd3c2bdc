"""Connections and requests of Tarantool 1.5's protocol."""
