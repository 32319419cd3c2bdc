"""The compiled module."""
