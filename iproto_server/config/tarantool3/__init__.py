"""Configuration files of Tarantool 3: YAML with the scopes of a cluster."""
