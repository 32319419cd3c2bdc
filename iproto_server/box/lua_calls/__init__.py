"""Tarantool's Lua functions for CALL: `box.space.NAME:select`, `box.schema.user.create`, `box.info` …

Each function takes the arguments of a call as a list, checks them as Tarantool's Lua code does, and uses the
facade for procedures.
"""
