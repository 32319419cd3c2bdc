"""Data files: locating, splitting, filtering, and damage."""
