"""Hash functions for `digest.lua` and `crypto.lua`."""
from __future__ import annotations
FUNCTIONS = {}
