"""Schedules of each minute."""

from __future__ import annotations

EACH_MINUTE = "* * * * *"
