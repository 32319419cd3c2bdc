"""Lua applications: a LuaJIT whose code uses the box, and whose functions clients call."""
