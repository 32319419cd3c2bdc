"""Limits on connections, requests and responses."""
