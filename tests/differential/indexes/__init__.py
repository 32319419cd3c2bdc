"""Indexes of all kinds on both servers."""
