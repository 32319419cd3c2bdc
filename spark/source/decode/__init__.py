"""Decoding of packed rows and keys."""
