"""The compiled twins of Python's functions and classes, and the choice between the two."""
