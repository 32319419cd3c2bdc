"""Trees of the compiled module."""
