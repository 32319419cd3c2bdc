"""Plugins of pytest for this project's own tests: markers, examples, tests that run alone, durations."""
