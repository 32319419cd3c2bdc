"""Random values, their encodings, and the spaces that hold them."""
