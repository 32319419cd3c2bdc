"""Connections that speak Tarantool 1.5's protocol."""
