"""Keys in the texts of errors."""

from __future__ import annotations

TYPES = ["fifo", "fifottl", "limfifottl"]
