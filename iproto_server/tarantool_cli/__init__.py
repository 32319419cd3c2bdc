"""The command `iproto-tarantool`, which runs scripts in Lua as the executable `tarantool` does.

What a short script does not need is imported late.
"""
