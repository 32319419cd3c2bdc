"""Transactions, triggers, and values that follow a transaction."""
