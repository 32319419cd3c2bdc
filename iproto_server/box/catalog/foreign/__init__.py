"""Definitions that other versions of Tarantool have stored: kept, or refused by name."""
