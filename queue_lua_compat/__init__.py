"""Queues that clients written for Tarantool's Lua queues call unchanged.

They are applications like any user's, written on the public API of `iproto_server` alone.
"""
