"""Limits on connections, requests and answers, and what happens when they are reached."""
