"""Tube drivers, one per tube type."""
