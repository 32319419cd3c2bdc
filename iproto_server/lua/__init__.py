"""Tarantool's Lua: LuaJIT in the server's process, with Tarantool's modules.

`runtime` creates the LuaJIT; the modules are in `modules/`, one file of Lua for each, and call functions of
Python, which are in `functions/`.
"""
