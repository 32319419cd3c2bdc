"""Fuzz targets of Lua: values, tuples, and texts that clients evaluate."""
