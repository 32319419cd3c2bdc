"""Facade of the compiled module."""
