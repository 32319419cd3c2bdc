"""Errors between Python and Lua."""

from __future__ import annotations


class HostError(Exception):
    """An error of a function of Python, with the message that Lua code gets."""
