"""Scenarios with a whole server: metrics, faults, hostile clients, reloads and long calls."""
