"""Measurements. Speed claims come from here; tests assert none."""
