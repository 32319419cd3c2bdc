"""Grammars of random snippets of Lua: a file of rules for each topic."""
