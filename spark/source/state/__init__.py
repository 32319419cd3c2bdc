"""The state of a space at a point in its log."""
