"""Targets of bytes that clients send: frames, requests, values, options."""
