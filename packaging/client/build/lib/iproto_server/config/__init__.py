"""Configuration: options, their sources, addresses and TLS."""
