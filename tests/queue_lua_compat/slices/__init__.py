"""Tests that no call holds the event loop, however many tasks there are."""
