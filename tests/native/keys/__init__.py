"""Keys of the compiled module."""
